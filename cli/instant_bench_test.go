package cli_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/rounds"
	"holdfast/internal/testenv"
)

// BenchmarkInstant compares the ways to an empty database, each until its first query is answered, in milliseconds: a
// database of a running appliance, a command under `run` with its private appliance running, a database for a test by
// sandbox.New, one right after the other and for tests that last 50 ms, initdb and a start by hand, CREATE DATABASE from a
// template in a running server, and pgtestdb, which does that. It ends with the requests to create alone, with bursts of
// them, with what each costs in memory, and with commands under `run` that start their private appliance.
func BenchmarkInstant(b *testing.B) {
	m := newMachine(b)
	m.warm = strconv.Itoa(core.DefaultWarm())
	m.ports = portRange(b, 100) // for the bursts
	m.start("--budgets", "create_database=10000/1m", "--trash-retention", "0")
	m.key = createKey(b, m, "--preset", "full_access", "--allow-dangerous")
	cache, err := os.MkdirTemp("", "hf-")
	if err == nil {
		err = os.Chmod(cache, 0o755)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(cache) })
	b.Setenv("XDG_CACHE_HOME", cache)
	b.Setenv("HOLDFAST_PRIVATE_IDLE", "10s")
	i := &instant{b: b, m: m, alone: map[time.Duration][]float64{}}
	sockets, stop := i.startPlain()
	defer stop()
	i.sockets, i.templatePort, i.pgtestdb = sockets, i.port, buildPgtestdb(b)
	names := []string{"create", rounds.Itself, "five-in-a-row", "run", "sandbox.New", "pgtestdb", "initdb-and-start", "CREATE-DATABASE", "sandbox.New-for-50-ms"}
	c := rounds.Compare(names...)
	i.run() // starts the private appliance
	for range b.N {
		for range rounds.Least {
			c.Round(
				rounds.Arm{Name: names[0], Measure: i.create}, rounds.Arm{Name: names[1], Measure: i.create},
				rounds.Arm{Name: names[2], Measure: i.burst}, rounds.Arm{Name: names[3], Measure: i.run},
				rounds.Arm{Name: names[4], Measure: func() float64 { return i.test(0) }}, rounds.Arm{Name: names[5], Measure: i.pgtestdbTest},
				rounds.Arm{Name: names[6], Measure: i.initdb}, rounds.Arm{Name: names[7], Measure: i.template},
				rounds.Arm{Name: names[8], Measure: func() float64 { return i.test(50 * time.Millisecond) }},
			)
		}
	}
	c.Report(b, "time")
	for _, name := range names {
		i.report(name, c.Values(name))
	}
	for lasts, values := range i.alone {
		i.report(fmt.Sprintf("sandbox.New-alone-%v", lasts), values)
	}
	i.memory(cache)
	i.requests()
	i.bursts()
	i.cold(cache)
	testenv.Eventually(b, "the end of the private appliance", func() bool { return len(processesNaming(cache)) == 0 })
}

type instant struct {
	b                  *testing.B
	m                  *machine
	sockets            string // of a server that runs
	templatePort, port string // of that server, and of the last one started
	made               int
	// pgtestdb is the program of testdata/pgtestdb, "" if it cannot be built.
	pgtestdb string
	// alone is what sandbox.New took without the first query, by how long the tests lasted.
	alone map[time.Duration][]float64
}

func since(began time.Time) float64 { return float64(time.Since(began).Microseconds()) / 1000 }

// query runs the first query over a new connection.
func (i *instant) query(url string) {
	if err := firstQuery(i.b.Context(), url); err != nil {
		i.b.Fatal(err)
	}
}

func firstQuery(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, "select 1")
	return err
}

// create measures a creation, a second after the last one. The database is deleted afterwards.
func (i *instant) create() float64 {
	time.Sleep(time.Second)
	return i.createMany(1)
}

// burst measures a creation among five without a pause, which take prepared directories and copies of the template.
func (i *instant) burst() float64 { return i.createMany(5) }

// createMany returns the mean time of a creation and its first query.
func (i *instant) createMany(count int) float64 {
	project := i.m.project()
	began := time.Now()
	var ids []string
	for range count {
		i.made++
		var made struct {
			ID          string
			Credentials struct {
				URL string `json:"connection_url"`
			}
		}
		i.m.must("POST", "/databases", map[string]any{"name": fmt.Sprintf("d%d", i.made), "project": project}, &made)
		i.query(made.Credentials.URL)
		ids = append(ids, made.ID)
	}
	took := since(began) / float64(count)
	for _, id := range ids {
		i.m.must("DELETE", "/databases/"+id, nil, nil)
	}
	return took
}

// run measures from the start of `run` to that of its command.
func (i *instant) run() float64 {
	time.Sleep(time.Second)
	began := time.Now()
	out, err := exec.Command(program, "run", "--private", "date", "+%s%N").Output()
	if err != nil {
		i.b.Fatal(err)
	}
	var at int64
	if _, err := fmt.Sscan(string(out), &at); err != nil {
		i.b.Fatal(err)
	}
	return float64(time.Unix(0, at).Sub(began).Microseconds()) / 1000
}

// startPlain runs initdb and starts a server, and returns its socket directory when it has answered a query.
func (i *instant) startPlain() (sockets string, stop func()) {
	dir, err := os.MkdirTemp("", "hf-")
	if err != nil {
		i.b.Fatal(err)
	}
	credential := giveAway(i.b, dir)
	bin := postgrestest.Binaries(i.b)
	data := filepath.Join(dir, "data")
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(bin.Tool(name), args...)
		cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, bin.Env(), &syscall.SysProcAttr{Credential: credential}
		return cmd
	}
	if out, err := command("initdb", "-U", "postgres", "-A", "trust", "-D", data).CombinedOutput(); err != nil {
		i.b.Fatalf("initdb: %v: %s", err, out)
	}
	_, i.port, _ = net.SplitHostPort(freeAddress(i.b))
	server := command("postgres", "-D", data, "-c", "listen_addresses=127.0.0.1", "-p", i.port, "-c", "unix_socket_directories="+dir)
	if err := server.Start(); err != nil {
		i.b.Fatal(err)
	}
	testenv.Eventually(i.b, "a server", func() bool {
		conn, err := pgx.Connect(i.b.Context(), "host="+dir+" user=postgres port="+i.port)
		if err == nil {
			conn.Close(i.b.Context())
		}
		return err == nil
	})
	return dir, func() {
		_ = server.Process.Signal(syscall.SIGINT)
		if err := errors.Join(server.Wait(), os.RemoveAll(dir)); err != nil {
			i.b.Error(err)
		}
	}
}

func (i *instant) initdb() float64 {
	began := time.Now()
	_, stop := i.startPlain()
	took := since(began)
	stop()
	return took
}

func (i *instant) template() float64 {
	conn, err := pgx.Connect(i.b.Context(), "host="+i.sockets+" user=postgres port="+i.templatePort)
	if err != nil {
		i.b.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(i.b.Context()))
	i.made++
	name := fmt.Sprintf("t%d", i.made)
	began := time.Now()
	if _, err := conn.Exec(i.b.Context(), "create database "+name+" template template0"); err != nil {
		i.b.Fatal(err)
	}
	i.query("host=" + i.sockets + " user=postgres dbname=" + name + " port=" + i.templatePort)
	took := since(began)
	if _, err := conn.Exec(i.b.Context(), "drop database "+name); err != nil {
		i.b.Fatal(err)
	}
	return took
}
