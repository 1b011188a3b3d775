# Lo que dice botmesh por sí mismo, en español. Los puntos de una clave se escriben aquí como "-".

core-conversation-interrupted = Perdona, nos interrumpieron. Empieza de nuevo, por favor.
core-conversation-timeout = Hace un rato que no me escribes, así que lo dejé aquí. Escríbeme cuando quieras seguir.
core-conversation-cancelled = De acuerdo, cancelado.

core-answer-invalid = No te entendí. Inténtalo de nuevo, por favor.
core-answer-not-offered = Elige una de las opciones, por favor.
core-answer-too-many = No lo logramos, así que lo dejé aquí. Escríbeme cuando quieras intentarlo otra vez.
core-answer-text-needed = Responde con un texto, por favor.
core-answer-number-needed = Responde con un número, por favor.

core-button-expired = Este botón ya no funciona.
core-command-unknown = No conozco ese comando.

core-choice-yes = Sí
core-choice-no = No

core-form-confirm = ¿Está todo bien?
core-form-which = ¿Qué quieres cambiar?
core-form-change = Cambiar
core-form-cancel = Cancelar

# Las palabras que terminan una conversación, separadas por comas.
core-cancel-words = cancelar, salir, terminar, parar
