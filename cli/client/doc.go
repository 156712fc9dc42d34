// Package client is a typed client of holdfast's API, for the command line and
// for anyone's program. It imports the standard library and package wire,
// which does the same.
//
//	c, err := client.New(client.Config{URL: "http://127.0.0.1:8432", Key: os.Getenv("HOLDFAST_API_KEY")})
//	for db, err := range c.Databases(ctx) { … }
//
// Every operation of the API's description is a method of the same name:
// listDatabases is Client.ListDatabases. On top of them there are iterators
// over whole lists (Databases, Objects), waits for what runs long
// (AwaitBackup, AwaitOperation), and streams (UploadObject, OpenDownload).
//
// Methods take and return the types of package wire, which the server uses
// too. They have no aliases here: each type has one name, and the fields of a
// record are documented once, where the API is defined. Types that only the
// client has, such as options of lists and pages, are in this package.
//
// What the API refuses is an *Error, with its code, its status and, where the
// API says so, when to try again. The client does not repeat requests; only
// the waits continue through a connection that breaks. To send a request
// again without it being carried out twice, see WithIdempotencyKey. A request
// that only reads is given up when nothing arrives for a minute; one that
// changes something may take as long as its context lets it. A Client may be
// used by many goroutines.
package client
