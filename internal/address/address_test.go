package address

import (
	"net/netip"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "8.8.8.8", "2001:db8::1", "fd12::1", "100.64.0.1", "64:ff9b::808:808",
		"64:ff9b:1::808:808", "::ffff:10.0.0.1", "192.0.1.1", "169.253.1.1", "fd00:43::42", "fd20:ce::1", "2001:470::1", "100.100.100.100",
	} {
		if err := Check(netip.MustParseAddr(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		"169.254.0.1", "169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fe80::1%eth0", "febf::1", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1",
		"0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0", "224.0.0.1", "ff02::1", "255.255.255.255", "240.0.0.1",
		// Metadata services: AWS, its credentials for containers, Google Cloud, Scaleway, Oracle Cloud, Akamai, Alibaba Cloud, Azure.
		"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "fd00:c1::a9fe:a9fe", "fd00:a9fe:a9fe::1",
		"192.0.0.192", "100.100.100.200", "168.63.129.16", "169.254.42.42", "169.254.0.23", "169.254.170.2",
		"::ffff:100.100.100.200", "::ffff:192.0.0.192", "::ffff:168.63.129.16", "fd20:ce::254%eth0",
		// The same through translators, in every layout.
		"64:ff9b::192.0.0.192", "64:ff9b::100.100.100.200", "64:ff9b::0.0.0.0", "64:ff9b::224.0.0.1",
		"64:ff9b:1::169.254.169.254", "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9:fe:a9fe::", "64:ff9b:1:0:a9:fea9:fe00:0", "64:ff9b:1:6464:64:c800::",
		// Deprecated forms of IPv4 addresses.
		"::169.254.169.254", "::10.0.0.1", "::2", "::ffff:0:10.0.0.1", "::ffff:0:169.254.169.254", "2002::1", "2002:808:808::1", "2001::1",
		"2001:0:a9fe:a9fe::5601:5601", "fec0::1", "ff05::1", "239.255.255.250",
	} {
		if err := Check(netip.MustParseAddr(text)); err == nil {
			t.Errorf("%s is let through", text)
		}
		if err := CheckPublic(netip.MustParseAddr(text)); err == nil {
			t.Errorf("%s is public", text)
		}
	}
}

func TestCheckPublic(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"8.8.8.8", "1.1.1.1", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808"} {
		if err := CheckPublic(netip.MustParseAddr(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "fd12::1",
		"::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1:a00:0:100::", "100.64.0.1", "198.18.0.1", "192.0.2.1", "2001:db8::1", "100::1",
	} {
		if err := CheckPublic(netip.MustParseAddr(text)); err == nil {
			t.Errorf("%s is public", text)
		}
	}
}
