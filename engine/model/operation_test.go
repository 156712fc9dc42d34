package model

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestOperationsAreUnique(t *testing.T) {
	t.Parallel()
	actions, names := map[Action]bool{}, map[string]bool{}
	for _, op := range Operations() {
		if actions[op.Action] || names[op.Name] {
			t.Errorf("%s or %s is in the table twice", op.Action, op.Name)
		}
		actions[op.Action], names[op.Name] = true, true
		if !regexp.MustCompile(`^[a-z]+(\.[a-z_]+)+$`).MatchString(string(op.Action)) {
			t.Errorf("the action %q is not of the form a.b", op.Action)
		}
		if !regexp.MustCompile(`^[a-z]+[A-Za-z]+$`).MatchString(op.Name) {
			t.Errorf("the name %q is no operationId", op.Name)
		}
	}
}

func TestOperationsAreWhole(t *testing.T) {
	t.Parallel()
	limited := map[RateClass]bool{}
	for _, op := range Operations() {
		device := strings.HasPrefix(string(op.Action), "device.")
		if device != (op.Scope == "") {
			t.Errorf("%s has the scope %q: all but device login need one", op.Action, op.Scope)
		}
		if op.Scope != "" && !slices.Contains(Scopes(), op.Scope) {
			t.Errorf("%s has the scope %q, which is none", op.Action, op.Scope)
		}
		if op.Rate != RateNone && !slices.Contains(RateClasses(), op.Rate) {
			t.Errorf("%s has the rate class %q, which is none", op.Action, op.Rate)
		}
		limited[op.Rate] = true
		if op.Destructive != strings.HasSuffix(string(op.Scope), ":delete") {
			t.Errorf("%s is destructive: %v, with the scope %s", op.Action, op.Destructive, op.Scope)
		}
		reads := strings.HasPrefix(op.Name, "get") || strings.HasPrefix(op.Name, "list")
		if reads && (op.Destructive || op.Rate != RateNone) {
			t.Errorf("%s only reads, and is destructive or limited", op.Action)
		}
	}
	for _, class := range RateClasses() {
		if !limited[class] {
			t.Errorf("no operation draws on %s", class)
		}
	}
}

// The scopes in the specification's endpoint tables, by operationId.
func TestOperationsHaveTheSpecifiedScopes(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"authorizeDevice": "", "getDeviceToken": "",
		"listDatabases": "database:read", "createDatabase": "database:create create_database", "getDatabase": "database:read",
		"deleteDatabase": "database:delete destructive", "restartDatabase": "database:update",
		"rotateDatabasePassword": "database:update", "getDatabaseConnection": "database:read",
		"getDatabaseSSL": "database:read", "getDatabaseAllowlist": "database:read", "replaceDatabaseAllowlist": "database:update",
		"getDatabaseRLS": "database:read", "setDatabaseRLS": "database:update",
		"listBackups": "backup:list", "createBackup": "backup:create create_backup", "getBackup": "backup:list",
		"deleteBackup": "backup:delete destructive", "restoreBackup": "backup:restore restore mode=new:database.create", "pinBackup": "backup:create",
		"getRecovery": "backup:list", "requestRestore": "backup:restore restore mode=new:database.create", "undoRestore": "backup:restore restore",
		"getExport":   "backup:download",
		"listImports": "database:read", "createImport": "database:create import also:database.create", "getImport": "database:read",
		"listBuckets": "storage:read", "createBucket": "storage:create create_bucket", "deleteBucket": "storage:delete destructive",
		"listObjects": "storage:read", "uploadObject": "storage:create", "getObject": "storage:read",
		"deleteObject": "storage:delete destructive",
		"getUsage":     "account:read", "getLimits": "account:read", "getBilling": "billing:read", "listKeys": "account:read", "getOffsite": "account:read",
		"listAuditLogs": "account:read", "getAgentStatus": "account:read", "listRecommendations": "account:read",
	}
	for _, op := range Operations() {
		got := string(op.Scope)
		if op.Destructive {
			got += " destructive"
		}
		if op.Rate != RateNone {
			got += " " + string(op.Rate)
		}
		for _, other := range op.Others {
			switch {
			case other.Field != "":
				got += " " + other.Field + "=" + other.Value + ":" + string(other.Act)
			case other.When == "":
				got += " also:" + string(other.Act)
			}
			if len(OperationFor(other.Act).Others) > 0 {
				t.Errorf("%s comes to %s, which itself comes to another act: those are not asked for", op.Name, other.Act)
			}
		}
		if expected, ok := want[op.Name]; ok && got != expected {
			t.Errorf("%s needs %q, want %q", op.Name, got, expected)
		}
		delete(want, op.Name)
	}
	for name := range want {
		t.Errorf("the specification's %s is not in the table", name)
	}
}

func TestOperationFor(t *testing.T) {
	t.Parallel()
	for _, op := range Operations() {
		if got := OperationFor(op.Action); !reflect.DeepEqual(got, op) {
			t.Errorf("%s gives %v", op.Action, got)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("an action of no operation does not panic")
		}
	}()
	OperationFor("no.such")
}
