# What botmesh itself says, in English. The dots of a key are written as "-" here.

core-conversation-interrupted = Sorry, we were interrupted. Please start again.
core-conversation-timeout = I have not heard from you for a while, so I stopped here. Write to me when you are ready.
core-conversation-cancelled = All right, cancelled.

core-answer-invalid = I did not understand that. Please try again.
core-answer-not-offered = Please choose one of the options.
core-answer-too-many = That did not work out, so I stopped here. Write to me when you want to try again.
core-answer-text-needed = Please answer with a text.
core-answer-number-needed = Please answer with a number.

core-button-expired = This button no longer works.
core-command-unknown = I do not know that command.

core-choice-yes = Yes
core-choice-no = No

core-form-confirm = Is everything correct?
core-form-which = What would you like to change?
core-form-change = Change
core-form-cancel = Cancel

# The words that end a conversation, with commas between them.
core-cancel-words = cancel, stop, quit, exit
