package engine

import (
	"fmt"

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
	if db.Status == model.DatabaseCreating {
		return SSL{}, notAvailable(db.Status, db.StatusReason)
	}
	certificate, err := postgres.ReadCertificate(e.dataDirectory(db.ID, db.Generation))
	if err != nil {
		return SSL{}, fmt.Errorf("read certificate: %w", err)
	}
	ssl := SSL{Certificate: certificate, CACertificate: e.ca.PEM()}
	if stats, ok := e.stats.get(db.ID); ok {
		ssl.Statistics = &stats
	}
	return ssl, nil
}
