package web

import (
	"holdfast/engine/connstring"
	"holdfast/engine/databases"
)

// connectData is what database_connect.html shows.
type connectData struct {
	databaseData
	Connection databases.Connection
	News       string // what has just changed the connection
}

func (d connectData) Password() string { return d.Connection.Password.Reveal() }

// CAFile returns the file name in Drivers; the page offers the file for
// download.
func (d connectData) CAFile() string { return databases.DefaultCAFile }

func (d connectData) Drivers() connstring.Drivers {
	return d.Connection.Drivers(databases.DefaultCAFile)
}

func (req *request) databaseConnect(db databaseData, _ error) (answer, error) {
	connection, err := req.engine.Databases.Connection(req.call, db.ID)
	return answer{page: "database_connect.html", data: connectData{databaseData: db, Connection: connection}}, err
}

// databaseAuthority sends the certificate with which clients verify the server.
func (req *request) databaseAuthority() (answer, error) {
	ssl, err := req.engine.Databases.SSLGet(req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	req.w.Header().Set("Content-Type", "application/x-pem-file")
	req.w.Header().Set("Content-Disposition", `attachment; filename="`+databases.DefaultCAFile+`"`)
	_, _ = req.w.Write([]byte(ssl.CACertificate))
	return answer{}, nil
}
