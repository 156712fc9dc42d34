// Command client is a client as its users write one, on what oapi-codegen
// generates.
package main

import (
	"context"
	"fmt"
	"generated/api"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

type user struct {
	*api.ClientWithResponses
	project, name string
}

func main() {
	log.SetFlags(log.Lshortfile)
	withKey := func(_ context.Context, req *http.Request) error {
		req.Header.Set("Authorization", "Bearer "+os.Args[2])
		return nil
	}
	client, err := api.NewClientWithResponses(os.Args[1], api.WithRequestEditorFn(withKey))
	check(err == nil, err)
	u := user{client, os.Args[3], os.Args[4]}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	u.makeBackup(ctx)
	u.store(ctx)
	u.list(ctx)
	u.fail(ctx)
}

func check(holds bool, what any) {
	if !holds {
		_ = log.Output(2, fmt.Sprintf("%v", what))
		os.Exit(1)
	}
}

func (u user) makeBackup(ctx context.Context) {
	once := "create " + u.name
	created, err := u.CreateDatabaseWithResponse(ctx, &api.CreateDatabaseParams{IdempotencyKey: &once}, api.CreateDatabase{Project: u.project, Name: u.name})
	check(err == nil && created.JSON200 != nil, fmt.Sprint(err, created))
	id := created.JSON200.Data.Id
	until(ctx, func() bool {
		got, err := u.GetDatabaseWithResponse(ctx, id)
		check(err == nil && got.JSON200 != nil, fmt.Sprint(err, got))
		return got.JSON200.Data.Status == api.DatabaseStatusAvailable && got.JSON200.Data.Operation == nil
	})
	begun, err := u.CreateBackupWithResponse(ctx, id, nil)
	check(err == nil && begun.JSON200 != nil, fmt.Sprint(err, begun))
	var backup api.Backup
	until(ctx, func() bool {
		got, err := u.GetBackupWithResponse(ctx, id, begun.JSON200.Data.Id)
		check(err == nil && got.JSON200 != nil, fmt.Sprint(err, got))
		backup = got.JSON200.Data
		return backup.Status == api.BackupStatusCompleted || backup.Status == api.BackupStatusFailed
	})
	check(backup.Status == api.BackupStatusCompleted && *backup.SizeBytes > 0, backup)
	dry, mode, name := true, api.New, u.name+"_copy"
	planned, err := u.RequestRestoreWithResponse(ctx, id, nil, api.RequestRestore{TargetLsn: backup.StopLsn, DryRun: &dry, Mode: &mode, Name: &name})
	check(err == nil && planned.JSON200 != nil, fmt.Sprint(err, planned))
	plan, err := planned.JSON200.Data.AsRestorePlan()
	check(err == nil && plan.BackupId == backup.Id, plan)
}

func until(ctx context.Context, done func() bool) {
	for !done() {
		select {
		case <-ctx.Done():
			check(false, "it takes too long")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (u user) store(ctx context.Context) {
	bucket, err := u.CreateBucketWithResponse(ctx, nil, api.CreateBucket{Project: u.project, Name: u.name + "-bytes"})
	check(err == nil && bucket.JSON200 != nil, fmt.Sprint(err, bucket))
	second, err := u.CreateBucketWithResponse(ctx, nil, api.CreateBucket{Project: u.project, Name: u.name + "-second"})
	check(err == nil && second.JSON200 != nil, fmt.Sprint(err, second))
	content, id := "bytes of "+u.name, bucket.JSON200.Data.Id
	put, err := u.UploadObjectWithBodyWithResponse(ctx, id, &api.UploadObjectParams{Key: "a/b.txt"}, "text/plain", strings.NewReader(content))
	check(err == nil && put.JSON200 != nil, fmt.Sprint(err, put))
	got, err := u.GetObjectWithResponse(ctx, id, "a/b.txt", nil)
	check(err == nil && got.JSON200 != nil, fmt.Sprint(err, got))
	object := got.JSON200.Data
	check(object.ContentType == "text/plain" && object.SizeBytes == int64(len(content)), object)
	check(object.DownloadUrl != nil, "no download URL for a key that may read")
	res, err := http.Get(*object.DownloadUrl)
	check(err == nil, err)
	defer res.Body.Close()
	downloaded, err := io.ReadAll(res.Body)
	check(err == nil && string(downloaded) == content, string(downloaded))
}

func (u user) list(ctx context.Context) {
	var names []string
	limit := int64(1)
	for params := (&api.ListBucketsParams{Limit: &limit}); ; {
		page, err := u.ListBucketsWithResponse(ctx, params)
		check(err == nil && page.JSON200 != nil, fmt.Sprint(err, page))
		for _, b := range page.JSON200.Data {
			names = append(names, b.Name)
		}
		if params.Cursor = page.JSON200.Meta.NextCursor; params.Cursor == nil {
			break
		}
	}
	check(slices.Contains(names, u.name+"-bytes") && slices.Contains(names, u.name+"-second"), names)
}

func (u user) fail(ctx context.Context) {
	absent, err := u.GetDatabaseWithResponse(ctx, "db_none")
	check(err == nil && absent.JSON404 != nil && absent.JSON404.Error.Code == api.ErrorCodeNotFound, fmt.Sprint(err, absent))
	refused, err := u.CreateBucketWithResponse(ctx, nil, api.CreateBucket{Project: u.project, Name: "Not A Bucket"})
	check(err == nil && refused.JSON422 != nil && refused.JSON422.Error.Code == api.ErrorCodeValidationError, fmt.Sprint(err, refused))
}
