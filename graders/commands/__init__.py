"""What each command of the command line does and prints. Only this room and `graders.cli` print."""
