package backup

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/backup/repository"
)

// BenchmarkPeer takes and restores a pgbench cluster in turns with pg_basebackup
// and, where it is installed, pgBackRest with two processes, and reports the
// ratios of the times: below 1 is better than the peer. "second" is
// the backup after about 1 % of the pages changed; the time in which the
// stand-in for the WAL archive looks for them is not counted.
//
// HOLDFAST_BENCH_SCALE is pgbench's: 100 makes about 1.5 GB; the default is 10.
func BenchmarkPeer(b *testing.B) {
	scale, err := strconv.Atoi(os.Getenv("HOLDFAST_BENCH_SCALE"))
	if err != nil {
		scale = 10
	}
	c := newCluster(b)
	c.pgbench(scale)
	p := &peers{b: b, c: c, a: newArchive(c), seconds: map[string]float64{}, stored: map[string]float64{}}
	if version, err := exec.Command("pgbackrest", "version").Output(); err == nil {
		p.backrest = true
		if err := exec.Command("pgbackrest", "help", "backup", "repo-block").Run(); err == nil {
			p.block = []string{"--repo1-bundle", "--repo1-block"}
		}
		b.Logf("compared with %s, incremental by blocks: %t", strings.TrimSpace(string(version)), p.block != nil)
	} else {
		b.Log("pgbackrest is not installed: compared with pg_basebackup alone")
	}
	for b.Loop() {
		p.round()
	}
	p.report()
}

// peers are what is measured, by "who act".
type peers struct {
	b        *testing.B
	c        *cluster
	a        *archive
	backrest bool
	block    []string // options by which it stores blocks, where it knows them
	dir      string
	repo     *repository.Repository
	seconds  map[string]float64
	stored   map[string]float64
}

func (p *peers) round() {
	var err error
	if p.dir, err = os.MkdirTemp("", "peers"); err != nil {
		p.b.Fatal(err)
	}
	defer os.RemoveAll(p.dir)
	if p.repo, err = repository.Open(p.path("repository")); err != nil {
		p.b.Fatal(err)
	}
	defer p.repo.Close()
	p.full()
	// One row in each hundredth page.
	p.c.query("update pgbench_accounts set abalance = abalance + 1 where aid % 6100 = 1")
	p.c.query("checkpoint")
	if p.backrest {
		p.measure("backrest second", func() { p.pgbackrest("--type=incr", "backup") }, "backrest")
	}
	p.take("second", Options{ID: "b2", Base: "b1"})
	p.restores()
}

func (p *peers) path(name string) string { return filepath.Join(p.dir, name) }

func (p *peers) full() {
	p.c.query("checkpoint")
	p.measure("client-zstd full", func() { p.basebackup("client-zstd:1", "client") }, "client")
	p.measure("server-zstd full", func() { p.basebackup("server-zstd:level=1,workers=2", "server") }, "server")
	if p.backrest {
		if err := os.MkdirAll(p.path("backrest"), 0o700); err != nil {
			p.b.Fatal(err)
		}
		p.pgbackrest("stanza-create")
		p.measure("backrest full", func() { p.pgbackrest("--type=full", "backup") }, "backrest")
	}
	p.take("full", Options{ID: "b1"})
}

func (p *peers) take(what string, opts Options) {
	conn := p.c.connect()
	scanned := p.a.scanned
	p.measure("ours "+what, func() {
		result, err := Take(p.b.Context(), conn, p.repo, p.a, opts)
		if err != nil {
			p.b.Fatal(err)
		}
		if (result.WholeReason == "") != (what == "second") {
			p.b.Fatalf("%s: %+v", what, result)
		}
	}, "repository")
	p.seconds["ours "+what] -= (p.a.scanned - scanned).Seconds()
}

// turns is how often each restores in a round; the quickest counts. On a
// virtual machine the first touch of memory that the host has taken back costs
// more than a whole restore, and hits whoever comes first.
const turns = 3

// restores measures each peer into a directory of its own, which goes before
// the next one's turn.
func (p *peers) restores() {
	best := map[string]float64{}
	for range turns {
		p.restoreEach(func(who string, act func(dir string)) {
			what := who + " restore"
			dir, before := p.path("restored"), p.seconds[what]
			if err := os.Mkdir(dir, 0o700); err != nil {
				p.b.Fatal(err)
			}
			p.measure(what, func() { act(dir) }, "")
			if err := os.RemoveAll(dir); err != nil {
				p.b.Fatal(err)
			}
			took := p.seconds[what] - before
			p.seconds[what] = before
			if quickest, measured := best[what]; !measured || took < quickest {
				best[what] = took
			}
		})
	}
	for what, seconds := range best {
		p.seconds[what] += seconds
	}
}

// restoreEach has each peer take its turn.
func (p *peers) restoreEach(into func(who string, act func(dir string))) {
	into("server-zstd", func(dir string) {
		run(p.b, exec.Command("sh", "-ec", "zstd -dc "+p.path("server/base.tar.zst")+" | tar -x -C "+dir+" && sync -f "+dir))
	})
	if p.backrest {
		into("backrest", func(string) { p.pgbackrest("--type=none", "restore") })
	}
	into("ours", func(dir string) {
		if err := restoreTo(p.b.Context(), p.repo, "b2", dir); err != nil {
			p.b.Fatal(err)
		}
	})
}

func (p *peers) basebackup(compress, dir string) {
	run(p.b, pgTool(p.b, "pg_basebackup", "-h", p.c.sockets, "-U", "postgres", "-c", "fast", "-X", "none", "--format=tar",
		"--compress="+compress, "-D", p.path(dir)))
}

// pgbackrest runs one command, the last of args.
func (p *peers) pgbackrest(args ...string) {
	args = append([]string{
		"--stanza=bench", "--no-config", "--repo1-path=" + p.path("backrest"), "--log-level-file=off", "--log-level-console=error",
		"--lock-path=" + p.dir,
	}, args...)
	switch args[len(args)-1] {
	case "backup":
		args = append(args, p.block...)
		args = append(args, "--compress-type=zst", "--compress-level=1", "--process-max=2", "--no-archive-check", "--start-fast")
		fallthrough
	case "stanza-create":
		args = append(args, "--pg1-path="+p.c.dir, "--pg1-socket-path="+p.c.sockets, "--pg1-user=postgres")
	case "restore":
		args = append(args, "--pg1-path="+p.path("restored"), "--process-max=2", "--archive-mode=off")
	}
	run(p.b, exec.Command("pgbackrest", args...))
}

// measure adds the time of act, and what it stored below dir.
func (p *peers) measure(what string, act func(), dir string) {
	before := p.size(dir)
	run(p.b, exec.Command("sync")) // nobody pays for what others wrote
	begin := time.Now()
	act()
	p.seconds[what] += time.Since(begin).Seconds()
	p.stored[what] += p.size(dir) - before
}

// size sums the files below dir, in MB.
func (p *peers) size(dir string) (mb float64) {
	if dir == "" {
		return 0
	}
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
	n := float64(p.b.N)
	for what, seconds := range p.seconds {
		p.b.ReportMetric(seconds/n, "s/"+strings.ReplaceAll(what, " ", "-"))
		if p.stored[what] > 0 {
			p.b.ReportMetric(p.stored[what]/n, "MB/"+strings.ReplaceAll(what, " ", "-"))
		}
		who, act, _ := strings.Cut(what, " ")
		if ours := p.seconds["ours "+act]; who != "ours" {
			p.b.ReportMetric(ours/seconds, fmt.Sprintf("%s/%s", act, who))
		}
	}
}
