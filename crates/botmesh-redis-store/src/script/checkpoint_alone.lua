return change_checkpoint()
