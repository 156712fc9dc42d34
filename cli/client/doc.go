// Package client is a typed client of holdfast's API, for the command line and
// for anyone's program. It stands on the standard library alone.
//
//	c, err := client.New(client.Config{URL: "http://127.0.0.1:8432", Key: os.Getenv("HOLDFAST_API_KEY")})
//	for db, err := range c.Databases(ctx) { … }
//
// Every operation of the API's description is a method of the same name:
// listDatabases is Client.ListDatabases. On top of them there are iterators
// over whole lists (Databases, Objects), waits for what runs long
// (AwaitBackup, AwaitOperation), and streams (UploadObject, OpenDownload).
//
// What the API refuses is an *Error, with its code, its status and, where it
// says so, when to try again. Requests are never repeated by themselves; the
// waits alone go on through a connection that breaks. What is only read is
// given up when nothing comes for a minute; what is to be done may take as
// long as its context lets it. A Client may be used by many goroutines.
package client
