package api

import (
	"context"
	"strings"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/server/api/wire"
)

type branchListInput struct {
	DatabaseInput
	PageInput
}

func (h *handlers) branchList(_ context.Context, call *model.Call, in *branchListInput) (core.List[wire.Database], error) {
	page, err := h.engine.Databases.Branches(call, in.ID, in.page())
	return convertList(page, NewDatabase), err
}

type createBranchInput struct {
	DatabaseInput
	Body wire.CreateBranch
}

func (h *handlers) branchCreate(ctx context.Context, call *model.Call, in *createBranchInput) (wire.Branch, error) {
	wanted := recovery.NewBranch{Name: in.Body.Name}
	if in.Body.ExpiresIn != nil {
		wanted.ExpiresIn = time.Duration(*in.Body.ExpiresIn) * time.Second
	}
	if after := in.Body.SleepAfterSeconds; after != nil {
		wanted.SleepAfter = new(time.Duration(*after) * time.Second)
	}
	var err error
	if wanted.At, err = momentOf(in.Body.At); err != nil {
		return wire.Branch{}, err
	}
	made, err := h.engine.Recovery.BranchCreate(ctx, call, in.ID, wanted)
	return newBranch(made), err
}

// momentOf returns the moment of a parent, zero for now.
func momentOf(at *time.Time) (time.Time, error) {
	if at == nil {
		return time.Time{}, nil
	}
	if at.IsZero() {
		return time.Time{}, model.Invalid("at", "must be a moment of the past; leave it out for now")
	}
	return *at, nil
}

func newBranch(b recovery.Branch) wire.Branch {
	view := wire.Branch{
		Database: NewDatabase(b.View), Operation: NewOperation(b.Started), Method: wire.BranchMethod(b.Method), MethodReason: orAbsent(b.Reason),
	}
	if b.Estimated != nil {
		seconds := b.Estimated.Seconds()
		view.EstimatedSeconds = &seconds
	}
	return view
}

type resetBranchInput struct {
	DatabaseInput
	Body *wire.ResetBranch
}

func (h *handlers) branchReset(ctx context.Context, call *model.Call, in *resetBranchInput) (wire.Branch, error) {
	var wanted wire.ResetBranch
	if in.Body != nil {
		wanted = *in.Body
	}
	at, err := momentOf(wanted.At)
	if err != nil {
		return wire.Branch{}, err
	}
	made, err := h.engine.Recovery.BranchReset(ctx, call, in.ID, at)
	return newBranch(made), err
}

func (h *handlers) branchDiff(ctx context.Context, call *model.Call, in *DatabaseInput) (wire.BranchDiff, error) {
	found, err := h.engine.Recovery.BranchDiff(ctx, call, in.ID)
	return wire.BranchDiff{
		ParentID: found.Parent, BranchID: found.Branch, Identical: len(found.Unified) == 0,
		Diff: strings.ToValidUTF8(string(found.Unified), "�"), Truncated: found.Truncated,
	}, err
}
