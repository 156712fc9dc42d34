package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed says which of the project's packages each may import, besides itself and
// its own subfolders. A package that is not named may import nothing of the
// project; tests are not held to it.
func allowed() map[string][]string {
	return map[string][]string{
		"holdfast":                                              {"cli"},
		"holdfast/cli":                                          {"backup", "backup/repository", "backup/wal", "backup/wal/xlog", "engine", "engine/access", "engine/advice", "engine/core", "engine/meta", "engine/model", "engine/move", "engine/offsite", "engine/postgres", "internal/durable", "internal/objectstore", "internal/sealed", "server", "server/api/wire", "server/metrics", "server/operator"},
		"holdfast/cli/internal/manual":                          {"cli"},
		"holdfast/cli/client":                                   {"server/api/wire"},
		"holdfast/cli/client/sandbox":                           {"server/api/wire"},
		"holdfast/cli/remote":                                   {"cli/client", "internal/durable", "internal/s3tools", "server/api/wire"},
		"holdfast/cli/doctor":                                   {"engine/postgres", "engine/postgres/binaries"},
		"holdfast/cli/sandbox":                                  {"engine/model", "server/operator"},
		"holdfast/server":                                       {"engine", "engine/model", "engine/objects", "engine/recovery", "internal/listen", "web"},
		"holdfast/server/api":                                   {"engine", "engine/access", "engine/connstring", "engine/core", "engine/databases", "engine/imports", "engine/insight", "engine/model", "engine/objects", "engine/offsite", "engine/postgres", "engine/recovery", "engine/webhooks", "server/content", "server/gate"},
		"holdfast/server/s3":                                    {"engine", "engine/access", "engine/core", "engine/model", "engine/objects", "internal/crc", "server/content", "server/gate"},
		"holdfast/server/content":                               {"engine/model"},
		"holdfast/server/gate":                                  {"engine", "engine/core", "engine/model"},
		"holdfast/server/metrics":                               {"engine", "engine/insight", "engine/model", "engine/offsite"},
		"holdfast/server/operator":                              {"engine", "engine/access", "engine/core", "engine/databases", "engine/model", "server/api", "server/api/wire"},
		"holdfast/web":                                          {"engine", "engine/access", "engine/connstring", "engine/core", "engine/databases", "engine/imports", "engine/insight", "engine/model", "engine/objects", "engine/offsite", "engine/password", "engine/postgres", "engine/recovery", "engine/webhooks", "internal/s3tools", "server/content"},
		"holdfast/engine":                                       {"internal/durable"},
		"holdfast/engine/core":                                  {"blobstore", "engine/advice", "engine/meta", "engine/model", "engine/postgres/binaries", "internal/durable", "internal/sealed"},
		"holdfast/engine/access":                                {"engine/core", "engine/meta", "engine/model", "engine/password"},
		"holdfast/engine/objects":                               {"blobstore", "engine/advice", "engine/core", "engine/meta", "engine/model", "internal/ctxio", "internal/durable", "internal/parallel"},
		"holdfast/engine/databases":                             {"backup/wal", "backup/wal/xlog", "engine/certificates", "engine/connstring", "engine/core", "engine/meta", "engine/model", "engine/password", "engine/postgres", "engine/postgres/binaries", "engine/postgres/extensions", "engine/postgres/parameters", "engine/postgres/proxy", "internal/durable"},
		"holdfast/engine/recovery":                              {"backup", "backup/repository", "backup/wal", "backup/wal/xlog", "blobstore", "engine/core", "engine/databases", "engine/meta", "engine/model", "engine/postgres", "engine/postgres/binaries", "internal/durable"},
		"holdfast/engine/imports":                               {"engine/core", "engine/databases", "engine/importer", "engine/meta", "engine/model", "engine/password", "engine/postgres", "engine/postgres/binaries", "internal/durable"},
		"holdfast/engine/insight":                               {"engine/access", "engine/advice", "engine/certificates", "engine/core", "engine/databases", "engine/imports", "engine/meta", "engine/model", "engine/objects", "engine/offsite", "engine/recovery"},
		"holdfast/engine/webhooks":                              {"engine/core", "engine/meta", "engine/model", "internal/address", "internal/durable"},
		"holdfast/engine/connstring":                            {"engine/model"},
		"holdfast/engine/importer":                              {"engine/model", "internal/address", "internal/ctxio"},
		"holdfast/engine/advice":                                {"engine/model", "engine/postgres", "engine/postgres/binaries"},
		"holdfast/engine/password":                              {"engine/model"},
		"holdfast/engine/meta":                                  {"engine/model"},
		"holdfast/engine/postgres/proxy":                        {"engine/certificates", "internal/listen"},
		"holdfast/engine/postgres":                              {"engine/certificates", "engine/model", "engine/postgres/binaries", "engine/postgres/extensions", "internal/durable", "internal/pgcontrol"},
		"holdfast/engine/postgres/binaries":                     {"internal/durable"},
		"holdfast/engine/postgres/extensions":                   {},
		"holdfast/engine/postgres/parameters":                   {"engine/model"},
		"holdfast/engine/certificates":                          {"internal/durable"},
		"holdfast/engine/move":                                  {},
		"holdfast/engine/postgres/postgrestest":                 {"engine/certificates", "engine/model", "engine/postgres", "engine/postgres/binaries", "internal/testenv"},
		"holdfast/engine/postgres/binaries/internal/packbundle": {"engine/postgres/binaries"},
		"holdfast/backup":                                       {"internal/durable", "internal/parallel", "internal/pgcontrol"},
		"holdfast/backup/repository":                            {"internal/crc", "internal/durable", "internal/parallel"},
		"holdfast/backup/wal":                                   {"internal/ctxio", "internal/durable", "internal/parallel"},
		"holdfast/backup/wal/xlog/xlogtest":                     {"backup/wal/xlog"},
		"holdfast/blobstore":                                    {"internal/crc", "internal/ctxio", "internal/durable"},
		"holdfast/internal/durable/faultfs":                     {"internal/durable"},
		"holdfast/internal/objectstore":                         {"internal/ctxio", "internal/durable"},
		"holdfast/internal/objectstore/objectstoretest":         {"internal/objectstore"},
		"holdfast/engine/offsite/stream":                        {"internal/ctxio", "internal/objectstore", "internal/sealed"},
		"holdfast/engine/offsite":                               {"backup/repository", "backup/wal", "backup/wal/xlog", "blobstore", "engine/core", "engine/databases", "engine/meta", "engine/model", "engine/objects", "engine/recovery", "internal/durable", "internal/objectstore", "internal/parallel", "internal/sealed"},
	}
}

// owners says which packages alone may import a library that is fenced in.
func owners() map[string]string {
	return map[string]string{
		"go.etcd.io/bbolt":                           "holdfast/engine/meta",
		"github.com/fergusstrange/embedded-postgres": "holdfast/engine/postgres",
		"github.com/danielgtaylor/huma/v2":           "holdfast/server/api",
		"github.com/julienschmidt/httprouter":        "holdfast/server/api",
		"github.com/spf13/cobra":                     "holdfast/cli",
		"github.com/prometheus":                      "holdfast/server/metrics",
		"github.com/minio/minio-go/v7":               "holdfast/internal/objectstore",
	}
}

// bare returns the packages that may import no other module.
func bare() []string {
	return []string{"holdfast/engine/model", "holdfast/server/api/wire", "holdfast/cli/client", "holdfast/cli/client/sandbox"}
}

func TestArrows(t *testing.T) {
	rules, all := allowed(), listImports(t)
	for pkg, to := range rules {
		for _, inner := range to {
			if !slices.Contains(all[pkg], "holdfast/"+inner) {
				t.Errorf("%s does not import %s, and has an arrow to it", pkg, inner)
			}
		}
	}
	for pkg, imports := range all {
		for _, imported := range imports {
			inner, ours := strings.CutPrefix(imported, "holdfast/")
			if ours && !strings.HasPrefix(imported, pkg+"/") && !slices.Contains(rules[pkg], inner) {
				t.Errorf("%s imports %s, which the arrows of ARCHITECTURE.md do not allow", pkg, imported)
			}
			for library, owner := range owners() {
				if (imported == library || strings.HasPrefix(imported, library+"/")) && pkg != owner && !strings.HasPrefix(pkg, owner+"/") {
					t.Errorf("%s imports %s, which belongs to %s", pkg, imported, owner)
				}
			}
			if slices.Contains(bare(), pkg) && strings.Contains(imported, ".") {
				t.Errorf("%s imports %s: it may import the standard library only", pkg, imported)
			}
		}
	}
}

func TestEveryPackageIsDocumented(t *testing.T) {
	out := goList(t, "{{.ImportPath}}\t{{.Doc}}")
	for line := range strings.Lines(out) {
		pkg, doc, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if doc == "" {
			t.Errorf("%s has no package comment", pkg)
		}
	}
}

func listImports(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	for line := range strings.Lines(goList(t, `{{.ImportPath}} {{join .Imports " "}}`)) {
		fields := strings.Fields(line)
		imports[fields[0]] = fields[1:]
	}
	return imports
}

func goList(t *testing.T, format string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", format, "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return string(out)
}
