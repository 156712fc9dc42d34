package core

import "regexp"

// refusedMemory matches what a server says when the kernel has no shared memory or semaphores for it: the error is the one
// of a full disk. Segments with a name are files in /dev/shm. A name without a slash at its beginning is a file on the disk.
var refusedMemory = regexp.MustCompile(`could not \w+ (shared memory segment|semaphores)( "/[^"\n]*"( to \d+ bytes)?)?: No space left on device`)

// kernelLimit returns which limit of the kernel an error is about, and the remedy, "" if none.
func kernelLimit(text string) string {
	found := refusedMemory.FindStringSubmatch(text)
	switch {
	case found == nil:
		return ""
	case found[1] == "semaphores":
		return "the kernel's limit of semaphores is reached: the operator must raise kernel.sem, or remove what killed servers left " +
			"(`ipcs -s` lists it, `ipcrm` removes it)"
	case found[2] != "":
		return "/dev/shm, the shared memory of the machine or the container, is full: the operator must make it larger"
	}
	return "the kernel's limit of shared memory segments is reached: the operator must raise kernel.shmmni, or remove what killed servers left " +
		"(`ipcs -m` lists it, `ipcrm` removes it)"
}

// withoutKernelLimits removes what is about limits of the kernel from a text.
func withoutKernelLimits(text string) string {
	return refusedMemory.ReplaceAllString(text, "")
}
