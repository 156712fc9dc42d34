package databases

import (
	"errors"
	"fmt"
	"io/fs"

	"holdfast/engine/certificates"
	"holdfast/engine/model"
)

// SSL describes the encryption of a database's connections.
type SSL struct {
	Certificate   certificates.Certificate
	CACertificate string
	Statistics    *Statistics
}

// MinTLSVersion is the oldest version of TLS that the instances accept.
const MinTLSVersion = "TLSv1.2"

// SSLGet returns a database's certificate and its connection statistics.
func (s *Service) SSLGet(call *model.Call, id string) (SSL, error) {
	db, err := s.Database(call, id)
	if err != nil {
		return SSL{}, err
	}
	status, reason := s.LiveStatus(db)
	if status == model.DatabaseCreating {
		return SSL{}, NotAvailable(db, status, reason)
	}
	certificate, err := certificates.Read(certificates.InDataDirectory(s.DataDirectory(db.ID, db.Generation)))
	if errors.Is(err, fs.ErrNotExist) && status != model.DatabaseAvailable { // its files do not exist yet, or no longer
		return SSL{}, NotAvailable(db, status, reason)
	}
	if err != nil {
		return SSL{}, fmt.Errorf("read certificate: %w", err)
	}
	ssl := SSL{Certificate: certificate, CACertificate: s.CA.PEM()}
	if stats, ok := s.Statistics.Get(db.ID); ok {
		ssl.Statistics = &stats
	}
	return ssl, nil
}
