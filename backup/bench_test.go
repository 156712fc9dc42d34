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
// a backup after about 1 % of the pages changed; the time in which the stand-in
// for the WAL archive looks for them is not counted.
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
		help, err := exec.Command("pgbackrest", "help", "backup", "repo-block").Output()
		if err == nil && !strings.Contains(string(help), "BETA") {
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

var peerNames = map[string]string{
	"backrest": "pgBackRest", "client-zstd": "pg_basebackup-client-zstd", "server-zstd": "pg_basebackup-server-zstd",
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
	newest   string             // backup in repo
	best     map[string]float64 // seconds, in this round
	seconds  map[string]float64
	stored   map[string]float64
}

// turns is how often each does each thing in a round; the quickest counts. On a virtual machine the first touch of memory that the host
// has taken back costs more than a whole restore, and hits whoever comes first.
const turns = 3

// round leaves everything where it is to its end: where many files have just
// been removed, ext4 takes its time to make new ones.
func (p *peers) round() {
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		p.b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	p.best = map[string]float64{}
	for turn := range turns {
		p.dir = filepath.Join(dir, strconv.Itoa(turn))
		if err := os.Mkdir(p.dir, 0o700); err != nil {
			p.b.Fatal(err)
		}
		if p.repo, err = repository.Open(p.path("repository")); err != nil {
			p.b.Fatal(err)
		}
		defer p.repo.Close()
		p.full()
	}
	for turn := range turns {
		// One row in each hundredth page.
		p.c.query(fmt.Sprintf("update pgbench_accounts set abalance = abalance + 1 where aid %% 6100 = %d", turn))
		p.c.query("checkpoint")
		if p.backrest {
			p.measure("backrest second", func() { p.pgbackrest("--type=incr", "backup") }, "backrest")
		}
		p.newest = fmt.Sprintf("b%d", turn+1)
		p.take("second", Options{ID: p.newest, Base: fmt.Sprintf("b%d", turn)})
	}
	for turn := range turns {
		p.restores(turn)
	}
	for what, seconds := range p.best {
		p.seconds[what] += seconds
	}
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
	p.take("full", Options{ID: "b0"})
}

func (p *peers) take(what string, opts Options) {
	conn := p.c.connect()
	p.measure("ours "+what, func() {
		result, err := Take(p.b.Context(), conn, p.repo, p.a, opts)
		if err != nil {
			p.b.Fatal(err)
		}
		if (result.WholeReason == "") != (what == "second") {
			p.b.Fatalf("%s: %+v", what, result)
		}
	}, "repository")
}

// restores has each peer restore into a directory of its own.
func (p *peers) restores(turn int) {
	p.restoreEach(func(who string, act func(dir string)) {
		dir := p.path(fmt.Sprintf("%s-%d", who, turn))
		if err := os.Mkdir(dir, 0o700); err != nil {
			p.b.Fatal(err)
		}
		p.measure(who+" restore", func() { act(dir) }, "")
	})
}

// restoreEach has each peer take its turn.
func (p *peers) restoreEach(into func(who string, act func(dir string))) {
	into("server-zstd", func(dir string) {
		run(p.b, exec.Command("sh", "-ec", "zstd -dc "+p.path("server/base.tar.zst")+" | tar -x -C "+dir+" && sync -f "+dir))
	})
	if p.backrest {
		into("backrest", func(dir string) { p.pgbackrest("--type=none", "--pg1-path="+dir, "restore") })
	}
	into("ours", func(dir string) {
		if err := restoreTo(p.b.Context(), p.repo, p.newest, dir); err != nil {
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
		args = append(args, "--process-max=2", "--archive-mode=off")
	}
	run(p.b, exec.Command("pgbackrest", args...))
}

// measure notes the time of act, and what it stored below dir.
func (p *peers) measure(what string, act func(), dir string) {
	before, scanned := p.size(dir), p.a.scanned
	run(p.b, exec.Command("sync")) // nobody pays for what others wrote
	begin := time.Now()
	act()
	took := (time.Since(begin) - (p.a.scanned - scanned)).Seconds()
	if best, measured := p.best[what]; !measured || took < best {
		p.best[what] = took
	}
	p.stored[what] = p.size(dir) - before
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
			p.b.ReportMetric(p.stored[what], "MB/"+strings.ReplaceAll(what, " ", "-"))
		}
		who, act, _ := strings.Cut(what, " ")
		if who == "ours" {
			continue
		}
		ours := "ours " + act
		p.b.ReportMetric(p.seconds[ours]/seconds, fmt.Sprintf("ratio:%s-time/%s", act, peerNames[who]))
		if p.stored[what] > 0 {
			p.b.ReportMetric(p.stored[ours]/p.stored[what], fmt.Sprintf("ratio:%s-stored/%s", act, peerNames[who]))
		}
	}
}
