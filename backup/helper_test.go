package backup

const helperTask = "HOLDFAST_BACKUP_TEST_TASK"

func runHelper(string) int { return 0 }
