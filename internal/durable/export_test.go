package durable

// PublishIfChanged is WriteFileIfChanged on another file system.
var PublishIfChanged = publishIfChanged
