choice = 4
