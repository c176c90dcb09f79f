"""Real faults and healthy loads, one file each; a file that is here is run by `lab score`."""
