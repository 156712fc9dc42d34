// Package client is a typed client of holdfast's API, for the command line and
// for other programs. It imports only the standard library and package wire,
// which does the same.
//
//	c, err := client.New(client.Config{URL: "http://127.0.0.1:8432", Key: os.Getenv("HOLDFAST_API_KEY")})
//	for db, err := range c.Databases(ctx, client.DatabaseOptions{}) { … }
//
// Every operation of the OpenAPI document is a method of the same name:
// listDatabases is Client.ListDatabases. The package adds iterators over whole
// lists (Databases, Objects), waits for long-running work (AwaitBackup,
// AwaitOperation), and streams (UploadObject, OpenDownload).
//
// Methods take and return the types of package wire, which the server uses too.
// They have no aliases here: each type has one name, and the fields of a record
// are documented once, where the API is defined. This package declares only the
// types that are the client's own, such as list options and pages.
//
// A request that the API refuses returns an *Error with its code, its status
// and, if the API states it, when to retry. The client repeats requests only where Config.Retries
// says so, and the waits continue after a connection error. To retry a request
// without carrying it out twice, see WithIdempotencyKey. A read request fails when
// nothing arrives for a minute; a request that changes something may take as
// long as its context allows. A Client is safe for concurrent use.
package client
