package engine

import (
	"errors"
	"fmt"
	"io/fs"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// SSL is how a database's connections are encrypted.
type SSL struct {
	Certificate   postgres.Certificate
	CACertificate string
	Statistics    *Statistics
}

// MinTLSVersion is the oldest TLS the instances speak.
const MinTLSVersion = "TLSv1.2"

// SSLGet returns a database's certificate and how its sessions connected.
func (e *Engine) SSLGet(call *model.Call, id string) (SSL, error) {
	db, err := e.database(call, id)
	if err != nil {
		return SSL{}, err
	}
	status, reason := e.liveStatus(db)
	if status == model.DatabaseCreating {
		return SSL{}, notAvailable(status, reason)
	}
	certificate, err := postgres.ReadCertificate(e.dataDirectory(db.ID, db.Generation))
	if errors.Is(err, fs.ErrNotExist) && status != model.DatabaseAvailable { // its files are still to be made, or are gone
		return SSL{}, notAvailable(status, reason)
	}
	if err != nil {
		return SSL{}, fmt.Errorf("read certificate: %w", err)
	}
	ssl := SSL{Certificate: certificate, CACertificate: e.ca.PEM()}
	if stats, ok := e.stats.get(db.ID); ok {
		ssl.Statistics = &stats
	}
	return ssl, nil
}
