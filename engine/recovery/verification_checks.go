package recovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"holdfast/backup"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// verifyRecovery recovers the unpacked files to the end of the backup as a restore does, on a private socket, and
// checks every table and index. When it returns, the instance has shut down cleanly.
func (s *Service) verifyRecovery(ctx context.Context, db model.Database, plan RestorePlan, instance, dir string) (checked postgres.Checked, err error) {
	scratch, err := s.ScratchInstance(ctx, db, instance, dir)
	if err != nil {
		return checked, err
	}
	scratch.Nice = verificationNice
	maps.Copy(scratch.Config.Settings, map[string]string{
		"autovacuum": "off", "fsync": "off", // the directory is removed afterwards
		"shared_buffers": "32MB",
	})
	began := time.Now()
	if err := s.StartRecovered(ctx, scratch, plan, func(int64, int64) {}); err != nil {
		return checked, errors.Join(fmt.Errorf("recover: %w", err), s.databases.StopInstance(ctx, scratch.ID))
	}
	s.notePace(verificationPaceSetting, plan, plan.unpacked, time.Since(began))
	checked, err = s.databases.Instances.CheckRelations(ctx, scratch.ID)
	return checked, errors.Join(err, s.StopRecovered(ctx, scratch))
}

// verificationDetail verifies the checksums of all pages, including those that amcheck does not cover (other indexes,
// maps, sequences), and says what was checked.
func (s *Service) verificationDetail(ctx context.Context, plan RestorePlan, checked postgres.Checked, dir string) (string, error) {
	detail := fmt.Sprintf("restored %d bytes and recovered to %s", plan.Backup.SizeBytes, plan.Target.End)
	if checked.Structure {
		detail += fmt.Sprintf("; amcheck found %d tables and %d indexes of %d databases sound", checked.Tables, checked.Indexes, checked.Databases)
	} else {
		detail += "; amcheck is not installed, so tables and indexes were not checked"
	}
	if len(checked.Missing) > 0 {
		detail += "; the machine lacks the files of extensions, whose indexes were not checked (" + strings.Join(checked.Missing, "; ") + ")"
	}
	if !checked.Checksums {
		return detail + "; the database has no data checksums", nil
	}
	pages, err := backup.CheckPages(ctx, dir)
	return detail + fmt.Sprintf("; the checksums of all %d pages are right", pages), err
}
