package web

import (
	"cmp"
	"strconv"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// branchesData is what database_branches.html shows.
type branchesData struct {
	databaseData
	Tree                       databases.BranchTree
	Typed, At, Lifetime, Sleep string // of a new branch
	Diff                       *recovery.SchemaDiff
}

// branchNode is a database in the picture of the branches.
type branchNode struct {
	databases.BranchTree
	Here string // id of the database whose page it is
}

// Nodes returns the branches of the node.
func (n branchNode) Nodes() []branchNode {
	var nodes []branchNode
	for _, b := range n.Branches {
		nodes = append(nodes, branchNode{b, n.Here})
	}
	return nodes
}

// Root returns the picture's first node.
func (d branchesData) Root() branchNode { return branchNode{d.Tree, d.ID} }

func (req *request) branches(db databaseData, cause error) (answer, error) {
	tree, err := req.engine.Databases.Tree(req.call, db.ID)
	data := branchesData{databaseData: db, Tree: tree, Typed: req.form("name"), At: req.form("at"), Lifetime: req.form("expires_in_hours"), Sleep: req.form("sleep_after")}
	return answer{page: "database_branches.html", data: data}, cmp.Or(cause, err)
}

func (req *request) branchCreate() (answer, error) {
	wanted := recovery.NewBranch{Name: req.form("name")}
	var err error
	if wanted.At, err = momentOrNow(req.form("at")); err != nil {
		return answer{}, err
	}
	if typed := req.form("expires_in_hours"); typed != "" {
		hours, err := strconv.Atoi(typed)
		if err != nil || hours < 1 || hours > 24*3650 {
			return answer{}, model.Invalid("expires_in_hours", "must be a whole number of hours, at most ten years, or empty for never")
		}
		wanted.ExpiresIn = time.Duration(hours) * time.Hour
	}
	if req.form("sleep_after") != "" {
		after, err := req.sleepAfter()
		if err != nil {
			return answer{}, err
		}
		wanted.SleepAfter = &after
	}
	_, err = req.engine.Recovery.BranchCreate(req.r.Context(), req.call, req.id(), wanted)
	return done(req.databasePath("branches"), "branch"), err
}

// momentOrNow parses the moment of a parent, zero for now.
func momentOrNow(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return parsePoint(text)
}

func (req *request) branchReset() (answer, error) {
	at, err := momentOrNow(req.form("at"))
	if err == nil {
		err = req.confirmDatabase()
	}
	if err == nil {
		_, err = req.engine.Recovery.BranchReset(req.r.Context(), req.call, req.id(), at)
	}
	return done(req.databasePath("branches"), "branch_reset"), err
}

func (req *request) branchDiff(db databaseData, cause error) (answer, error) {
	found, err := req.engine.Recovery.BranchDiff(req.r.Context(), req.call, db.ID)
	if err != nil {
		return req.branches(db, cmp.Or(cause, err))
	}
	tree, err := req.engine.Databases.Tree(req.call, db.ID)
	return answer{page: "database_branches.html", data: branchesData{databaseData: db, Tree: tree, Diff: &found}}, cmp.Or(cause, err)
}

// branchExpiry sets when a branch is deleted.
func (req *request) branchExpiry() (answer, error) {
	var at *time.Time
	if typed := req.form("expires_at"); typed != "" {
		moment, err := parsePoint(typed)
		if err != nil {
			return answer{}, model.Invalid("expires_at", "must be a moment in UTC, such as 2026-01-31T12:00, or empty for never")
		}
		at = &moment
	}
	if err := req.confirmDatabase(); err != nil {
		return answer{}, err
	}
	_, err := req.engine.Databases.Update(req.r.Context(), req.call, req.id(), databases.Change{ExpiresAt: &at})
	return done(req.databasePath("branches"), "database_updated"), err
}
