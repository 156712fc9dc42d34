package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fault is a failure, which ends before the function returns.
type fault struct {
	name string
	do   func(*chaos, *rand.Rand)
}

func faults() []fault {
	return []fault{
		{"kill the appliance", (*chaos).killAppliance},
		{"kill the appliance", (*chaos).killAppliance},
		{"kill the appliance while it starts", (*chaos).killStarting},
		{"kill everything", (*chaos).killEverything},
		{"stop the appliance", (*chaos).stopAppliance},
		{"kill a postmaster", (*chaos).killPostmaster},
		{"kill a postmaster", (*chaos).killPostmaster},
		{"kill a server process", (*chaos).killServerProcess},
		{"pause the appliance", (*chaos).pauseAppliance},
		{"pause a server process", (*chaos).pauseServerProcess},
		{"fill the disk", (*chaos).fillDisk},
		{"move the clock", (*chaos).moveClock},
	}
}

// misfortunes causes faults until over ends. The first of a run is the most
// severe.
func (c *chaos) misfortunes(over context.Context, random *rand.Rand) {
	all := faults()
	for i := 0; ; i++ {
		select {
		case <-over.Done():
			return
		case <-time.After(time.Duration(300+random.IntN(3500)) * time.Millisecond):
		}
		f := all[random.IntN(len(all))]
		c.mu.Lock()
		if c.counts["kill the appliance"] == 0 {
			f = all[0]
		}
		c.mu.Unlock()
		c.faulty.Add(1)
		f.do(c, random)
		c.mu.Lock()
		c.lastFor = time.Now()
		c.counts[f.name]++
		c.mu.Unlock()
		c.faulty.Add(-1)
	}
}

func (c *chaos) killAppliance(random *rand.Rand) {
	c.m.kill()
	if random.IntN(2) == 0 {
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond) // its servers run on alone
	}
	c.startAgain()
}

// startAgain starts the appliance once no operator command uses its files.
func (c *chaos) startAgain() {
	c.alive.Lock()
	defer c.alive.Unlock()
	c.start()
}

// killStarting kills the appliance again during its start, while it recovers
// from the first kill.
func (c *chaos) killStarting(random *rand.Rand) {
	c.m.kill()
	c.alive.Lock()
	defer c.alive.Unlock()
	for range 1 + random.IntN(2) {
		c.launch()
		time.Sleep(time.Duration(random.IntN(700)) * time.Millisecond) // the time of the kill
		c.m.kill()
	}
	c.start()
}

// killEverything kills all processes, as a power failure would.
func (c *chaos) killEverything(*rand.Rand) {
	c.m.kill()
	for _, pid := range c.postmasters() {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
	}
	c.startAgain()
}

func (c *chaos) stopAppliance(*rand.Rand) {
	c.m.stop()
	c.startAgain()
}

func (c *chaos) killPostmaster(random *rand.Rand) {
	if pid := drawProcess(random, c.postmasters()); pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (c *chaos) killServerProcess(random *rand.Rand) {
	if pid := drawProcess(random, childrenOf(drawProcess(random, c.postmasters()))); pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (c *chaos) pauseAppliance(random *rand.Rand) { pauseProcess(random, c.m.process.Process.Pid) }

func (c *chaos) pauseServerProcess(random *rand.Rand) {
	pid := drawProcess(random, c.postmasters())
	if random.IntN(2) == 0 {
		pid = drawProcess(random, childrenOf(pid))
	}
	pauseProcess(random, pid)
}

func pauseProcess(random *rand.Rand, pid int) {
	if pid == 0 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return
	}
	time.Sleep(time.Duration(100+random.IntN(3000)) * time.Millisecond)
	_ = syscall.Kill(pid, syscall.SIGCONT)
}

// takeClock switches to the binary with the movable clock.
func (c *chaos) takeClock() {
	dir := filepath.Dir(c.m.dataDir) // the appliance's user can enter it
	c.m.program = filepath.Join(dir, "holdfast")
	if err := buildProgram(c.m.program, "-tags", "movedclock"); err != nil {
		c.t.Fatal("build the program:", err)
	}
	c.offset = filepath.Join(dir, "offset")
	c.m.env = append(c.m.env, "HOLDFAST_CLOCK_OFFSET="+c.offset)
	c.setClock(0)
}

// setClock writes the offset atomically.
func (c *chaos) setClock(offset time.Duration) {
	next := c.offset + ".next"
	if err := os.WriteFile(next, []byte(offset.String()), 0o644); err != nil {
		c.t.Error(err)
	}
	if err := os.Rename(next, c.offset); err != nil {
		c.t.Error(err)
	}
}

// moveClock moves the appliance's clock forward or back by some minutes, less
// than the lifetime of anything it issues, and then back.
func (c *chaos) moveClock(random *rand.Rand) {
	const most = int(clockMoved / time.Second)
	c.clockMoves.Add(1)
	c.setClock(time.Duration(random.IntN(2*most)-most) * time.Second)
	time.Sleep(time.Duration(500+random.IntN(4000)) * time.Millisecond)
	c.setClock(0)
	c.clockMoves.Add(1)
}

// clockMoved is the maximum offset of the clock.
const clockMoved = 5 * time.Minute

// fillDisk fills the disk for some time. Processes that die of it free some
// space, so it fills the disk again and again.
func (c *chaos) fillDisk(random *rand.Rand) {
	if c.fill == nil {
		return
	}
	defer c.empty()
	for range 1 + random.IntN(20) {
		c.fill()
		time.Sleep(200 * time.Millisecond)
	}
}

// postmasters returns the servers of the data directory, including those of prepared
// directories, restores and verifications.
func (c *chaos) postmasters() (pids []int) {
	for _, t := range tasks() {
		if t.isPostmaster(c.m.dataDir) {
			pids = append(pids, t.pid)
		}
	}
	return pids
}

func (t task) isPostmaster(dataDir string) bool {
	program, arguments, _ := strings.Cut(t.command, "\x00")
	return filepath.Base(program) == "postgres" && strings.Contains(arguments, dataDir)
}

func drawProcess(random *rand.Rand, pids []int) int {
	if len(pids) == 0 {
		return 0
	}
	slices.Sort(pids)
	return pids[random.IntN(len(pids))]
}

// childrenOf returns the child processes of pid.
func childrenOf(pid int) []int {
	if pid == 0 {
		return nil
	}
	var children []int
	for _, task := range tasks() {
		if task.parent == pid {
			children = append(children, task.pid)
		}
	}
	return children
}

// task is a process of this machine.
type task struct {
	pid, parent int
	command     string // separated by NULs
	directory   string // working directory; "" if unknown
}

func tasks() []task {
	var all []task
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range entries {
		command, err := os.ReadFile(dir + "/cmdline")
		stat, err2 := os.ReadFile(dir + "/stat")
		end := bytes.LastIndexByte(stat, ')')
		if err != nil || err2 != nil || end < 0 {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[end+1:]))
		t := task{command: string(command)}
		t.pid, _ = strconv.Atoi(filepath.Base(dir))
		t.parent, _ = strconv.Atoi(fields[1])
		t.directory, _ = os.Readlink(dir + "/cwd")
		all = append(all, t)
	}
	return all
}

// String returns the process's name for messages.
func (t task) String() string {
	return fmt.Sprintf("%d (of %d) %s in %s", t.pid, t.parent, strings.ReplaceAll(strings.TrimRight(t.command, "\x00"), "\x00", " "), t.directory)
}
