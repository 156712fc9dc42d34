// Package certificates is the appliance's certificate authority. It issues the
// certificates of the databases' servers and of the API, and describes them to people.
//
// A new authority is bound to the hosts that the appliance serves: with a stolen key
// nobody can impersonate other hosts to its clients.
package certificates
