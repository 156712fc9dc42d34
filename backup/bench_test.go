package backup

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/backup/repository"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/rounds"
)

// BenchmarkPeer takes and restores backups of a pgbench cluster in rounds with pg_basebackup and, if it is
// installed, pgBackRest with two processes, and reports the ratios of the times: below 1 is better than the peer.
// "second" is a backup after about 1 % of the pages changed, without the time in which the stand-in for the WAL
// archive finds those pages.
//
// HOLDFAST_BENCH_SCALE is pgbench's scale: 100 makes about 1.5 GB; the default is 10.
func BenchmarkPeer(b *testing.B) {
	scale, err := strconv.Atoi(os.Getenv("HOLDFAST_BENCH_SCALE"))
	if err != nil {
		scale = 10
	}
	c := newCluster(b)
	c.pgbench(scale)
	p := &peers{b: b, c: c, a: newArchive(c), stored: map[string]float64{}}
	if version, err := exec.Command("pgbackrest", "version").Output(); err == nil {
		p.backrest = true
		help, err := exec.Command("pgbackrest", "help", "backup", "repo-block").Output()
		if err == nil && !strings.Contains(string(help), "BETA") {
			p.block = []string{"--repo1-bundle", "--repo1-block"}
		}
		b.Logf("compared with %s, incremental by blocks: %t", strings.TrimSpace(string(version)), p.block != nil)
	} else {
		b.Log("pgbackrest is not installed: compared with pg_basebackup alone")
	}
	p.full = rounds.Compare(p.with(clientZstd, serverZstd)...)
	p.second = rounds.Compare(p.with()...)
	p.restore = rounds.Compare(p.with(serverZstd)...)
	for b.Loop() {
		for range rounds.Least {
			p.round()
		}
	}
	p.report()
}

// The arms and their names in the table.
const (
	ours       = "ours"
	backrest   = "pgBackRest"
	clientZstd = "pg_basebackup-client-zstd"
	serverZstd = "pg_basebackup-server-zstd"
)

// peers are the measured programs.
type peers struct {
	b                     *testing.B
	c                     *cluster
	a                     *archive
	backrest              bool
	block                 []string // options for pgBackRest's block incremental backup, if it is supported
	dir                   string   // directory of this round
	repos                 map[string]*repository.Repository
	full, second, restore *rounds.Comparison
	stored                map[string]float64 // MB, by "act/arm"
}

// with returns the arms of a comparison: ours, twice, the given ones, and pgBackRest if it is installed.
func (p *peers) with(others ...string) []string {
	names := append([]string{ours, rounds.Itself}, others...)
	if p.backrest {
		names = append(names, backrest)
	}
	return names
}

// round takes a full backup with each arm, then a second one, and restores that. It removes nothing until its end:
// ext4 creates files slowly where many were just removed.
func (p *peers) round() {
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		p.b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	p.dir, p.repos = dir, map[string]*repository.Repository{}
	for _, name := range []string{ours, rounds.Itself} {
		if p.repos[name], err = repository.Open(p.path(name)); err != nil {
			p.b.Fatal(err)
		}
		defer p.repos[name].Close()
	}
	if p.backrest {
		if err := os.MkdirAll(p.path(backrest), 0o700); err != nil {
			p.b.Fatal(err)
		}
		p.pgbackrest("stanza-create")
	}
	p.compare(p.full, "full", p.takeFull)
	// One row in each hundredth page.
	p.c.query("update pgbench_accounts set abalance = abalance + 1 where aid % 6100 = 0")
	p.compare(p.second, "second", p.takeSecond)
	p.compare(p.restore, "", p.restoreAll)
}

func (p *peers) path(name string) string { return filepath.Join(p.dir, name) }

// compare measures a round of arms. It stores their results as act, unless act is empty.
func (p *peers) compare(c *rounds.Comparison, act string, do func(name string)) {
	var arms []rounds.Arm
	for _, name := range c.Names() {
		arms = append(arms, rounds.Arm{Name: name, Measure: func() float64 { return p.measure(act, name, do) }})
	}
	c.Round(arms...)
}

// measure returns the seconds that an arm takes, and records what it stored.
func (p *peers) measure(act, name string, do func(name string)) float64 {
	p.c.query("checkpoint")
	before, scanned := p.size(name), p.a.scanned
	postgrestest.Run(p.b, exec.Command("sync")) // no arm pays for the writes of another
	begin := time.Now()
	do(name)
	took := (time.Since(begin) - (p.a.scanned - scanned)).Seconds()
	if act != "" {
		p.stored[act+"/"+name] = p.size(name) - before
	}
	return took
}

func (p *peers) takeFull(name string) {
	switch name {
	case clientZstd:
		p.basebackup("client-zstd:1", name)
	case serverZstd:
		p.basebackup("server-zstd:level=1,workers=2", name)
	case backrest:
		p.pgbackrest("--type=full", "backup")
	default:
		p.take(name, Options{ID: "b0"}, false)
	}
}

func (p *peers) takeSecond(name string) {
	if name == backrest {
		p.pgbackrest("--type=incr", "backup")
		return
	}
	p.take(name, Options{ID: "b1", Base: "b0"}, true)
}

// take takes a backup of ours and checks whether it builds on the previous one.
func (p *peers) take(name string, opts Options, builds bool) {
	result, err := Take(p.b.Context(), p.c.connect(), p.repos[name], p.a, opts)
	if err != nil {
		p.b.Fatal(err)
	}
	if (result.WholeReason == "") != builds {
		p.b.Fatalf("%s: %+v", opts.ID, result)
	}
}

// restoreAll restores the newest backup of an arm into a separate directory.
func (p *peers) restoreAll(name string) {
	dir := p.path("restored-" + name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		p.b.Fatal(err)
	}
	switch name {
	case serverZstd:
		postgrestest.Run(p.b, exec.Command("sh", "-ec", "zstd -dc "+p.path(name)+"/base.tar.zst | tar -x -C "+dir+" && sync -f "+dir))
	case backrest:
		p.pgbackrest("--type=none", "--pg1-path="+dir, "restore")
	default:
		if err := restoreTo(p.b.Context(), p.repos[name], "b1", dir); err != nil {
			p.b.Fatal(err)
		}
	}
}

func (p *peers) basebackup(compress, dir string) {
	postgrestest.Run(p.b, pgTool(p.b, "pg_basebackup", "-h", p.c.SocketDir, "-U", "postgres", "-c", "fast", "-X", "none", "--format=tar",
		"--compress="+compress, "-D", p.path(dir)))
}

// pgbackrest runs one command, the last element of args.
func (p *peers) pgbackrest(args ...string) {
	args = append([]string{
		"--stanza=bench", "--no-config", "--repo1-path=" + p.path(backrest), "--log-level-file=off", "--log-level-console=error",
		"--lock-path=" + p.dir,
	}, args...)
	switch args[len(args)-1] {
	case "backup":
		args = append(args, p.block...)
		args = append(args, "--compress-type=zst", "--compress-level=1", "--process-max=2", "--no-archive-check", "--start-fast")
		fallthrough
	case "stanza-create":
		args = append(args, "--pg1-path="+p.c.Dir, "--pg1-socket-path="+p.c.SocketDir, "--pg1-user=postgres")
	case "restore":
		args = append(args, "--process-max=2", "--archive-mode=off")
	}
	postgrestest.Run(p.b, exec.Command("pgbackrest", args...))
}

// size sums up the files below dir in MB.
func (p *peers) size(dir string) (mb float64) {
	_ = filepath.WalkDir(p.path(dir), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				mb += float64(info.Size()) / 1e6
			}
		}
		return nil
	})
	return mb
}

func (p *peers) report() {
	for act, c := range map[string]*rounds.Comparison{"full": p.full, "second": p.second, "restore": p.restore} {
		c.Report(p.b, act+"-time")
		for _, name := range c.Names() {
			p.b.ReportMetric(rounds.Median(c.Values(name)), "s/"+act+"-"+name)
		}
	}
	for what, stored := range p.stored {
		act, name, _ := strings.Cut(what, "/")
		p.b.ReportMetric(stored, "MB/"+act+"-"+name)
		if name != ours && name != rounds.Itself {
			rounds.Ratios(p.b, act+"-stored", name, p.stored[act+"/"+ours]/stored)
		}
	}
}
