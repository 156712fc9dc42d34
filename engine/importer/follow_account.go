package importer

import "holdfast/engine/model"

// ChangeFollow changes how the record says that the import follows its source. Snapshots keep what they had.
func (a *Account) ChangeFollow(change func(*model.ImportFollow)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.record.Follow == nil {
		return
	}
	follow := *a.record.Follow
	change(&follow)
	a.record.Follow = &follow
}

// Attempt runs what may be refused and tried again: the flaws that a refused attempt recorded are dropped.
func (a *Account) Attempt(do func() error) error {
	a.mu.Lock()
	flaws, beyond, flawed := len(a.record.Errors), a.record.ErrorsBeyond, a.flawed
	a.mu.Unlock()
	err := do()
	if err == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record.Errors, a.record.ErrorsBeyond, a.flawed = a.record.Errors[:flaws:flaws], beyond, flawed
	return err
}
