"""What is measured, seen from within the process of a candidate: functions of a set that it holds, a number of samples and a seed."""
