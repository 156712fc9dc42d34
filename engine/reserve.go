package engine

import "holdfast/engine/core"

// fillReserve reserves space for a start on a full disk. Without enough free space it reserves what it can.
func (e *Engine) fillReserve() error {
	if err := e.Core.Meta.FillReserve(); err != nil && !core.IsDiskFull(err) {
		return err
	}
	return nil
}
