package web

import (
	"holdfast/engine"
	"holdfast/engine/connstring"
)

// connectData is what database_connect.html shows.
type connectData struct {
	databaseData
	Connection engine.Connection
	News       string // what made the connection what it is
}

func (d connectData) Password() string { return d.Connection.Password.Reveal() }

// CAFile is the file that Drivers name; the page offers it for download.
func (d connectData) CAFile() string { return engine.DefaultCAFile }

func (d connectData) Drivers() connstring.Drivers { return d.Connection.Drivers(engine.DefaultCAFile) }

func (v *visit) databaseConnect() (answer, error) {
	db, err := v.withDatabase("connect")
	if err != nil {
		return answer{}, err
	}
	connection, err := v.engine.DatabaseConnection(v.call, db.ID)
	return answer{page: "database_connect.html", title: db.title(), data: connectData{databaseData: db, Connection: connection}, live: db.busy()}, err
}

// databaseAuthority sends the certificate by which clients know the server.
func (v *visit) databaseAuthority() (answer, error) {
	ssl, err := v.engine.SSLGet(v.call, v.r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	v.w.Header().Set("Content-Type", "application/x-pem-file")
	v.w.Header().Set("Content-Disposition", `attachment; filename="`+engine.DefaultCAFile+`"`)
	_, _ = v.w.Write([]byte(ssl.CACertificate))
	return answer{}, nil
}
