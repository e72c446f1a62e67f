// kube-proxy's rules for some Services, in both modes, in the form in which its programs get them:
// - default/web 10.96.0.10:80, node port 30080: two endpoints
// - default/local, load-balancer IP 192.0.2.10:80 with source ranges, externalTrafficPolicy Local: two endpoints, none on this node
// - default/sticky 10.96.0.12:53/udp with session affinity: one endpoint
// - default/broken 10.96.0.11:80: no endpoints
// - default/web also has [fd00:96::10]:80 with one endpoint; nftables in the form of older versions

/** For `nft -f`. */
export const nftablesRules = `
table ip kube-proxy {
  comment "rules for kube-proxy"
  set cluster-ips { type ipv4_addr; elements = { 10.96.0.10, 10.96.0.11, 10.96.0.12, 10.96.0.13 } }
  set affinity-CCCC-default/sticky/udp/dns__10.244.1.6/5353 {
    type ipv4_addr
    flags dynamic,timeout
    timeout 10800s
    elements = { 10.244.9.9 }
  }
  map firewall-ips { type ipv4_addr . inet_proto . inet_service : verdict; elements = { 192.0.2.10 . tcp . 80 : goto firewall-BBBB-default/local/tcp/http } }
  map no-endpoint-nodeports { type inet_proto . inet_service : verdict; }
  map no-endpoint-services {
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = {
      10.96.0.11 . tcp . 80 comment "default/broken:" : goto reject-chain,
      192.0.2.10 . tcp . 80 comment "default/local:http" : drop
    }
  }
  map service-ips {
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = {
      10.96.0.10 . tcp . 80 : goto service-AAAA-default/web/tcp/http,
      10.96.0.12 . udp . 53 : goto service-CCCC-default/sticky/udp/dns,
      10.96.0.13 . tcp . 80 : goto service-BBBB-default/local/tcp/http,
      192.0.2.10 . tcp . 80 : goto external-BBBB-default/local/tcp/http
    }
  }
  map service-nodeports { type inet_proto . inet_service : verdict; elements = { tcp . 30080 : goto external-AAAA-default/web/tcp/http } }
  chain reject-chain { reject; }
  chain firewall-BBBB-default/local/tcp/http { ip saddr != { 203.0.113.0/25 } drop; }
  chain endpoint-CCCC-default/sticky/udp/dns__10.244.1.6/5353 {
    update @affinity-CCCC-default/sticky/udp/dns__10.244.1.6/5353 { ip saddr }
    meta l4proto udp dnat to 10.244.1.6:5353
  }
  chain service-AAAA-default/web/tcp/http {
    meta l4proto tcp dnat ip addr . port to numgen random mod 2 map { 0 : 10.244.1.5 . 8080, 1 : 10.244.2.7 . 8080 }
  }
  chain external-AAAA-default/web/tcp/http {
    mark set mark or 0x4000 comment "masquerade"
    goto service-AAAA-default/web/tcp/http
  }
  chain service-BBBB-default/local/tcp/http {
    meta l4proto tcp dnat ip addr . port to numgen random mod 2 map { 0 : 10.244.2.8 . 8080, 1 : 10.244.3.8 . 8080 }
  }
  chain external-BBBB-default/local/tcp/http {
    ip saddr 10.244.0.0/16 goto service-BBBB-default/local/tcp/http comment "short-circuit pod traffic"
    fib saddr type local mark set mark or 0x4000 comment "masquerade local traffic"
    fib saddr type local goto service-BBBB-default/local/tcp/http comment "short-circuit local traffic"
  }
  chain service-CCCC-default/sticky/udp/dns {
    ip saddr @affinity-CCCC-default/sticky/udp/dns__10.244.1.6/5353 goto endpoint-CCCC-default/sticky/udp/dns__10.244.1.6/5353
    numgen random mod 1 vmap { 0 : goto endpoint-CCCC-default/sticky/udp/dns__10.244.1.6/5353 }
  }
}
table ip6 kube-proxy {
  map service-ips { type ipv6_addr . inet_proto . inet_service : verdict; elements = { fd00:96::10 . tcp . 80 : goto service-AAAA-default/web/tcp/http } }
  chain endpoint-AAAA-default/web/tcp/http__fd00.244..5/8080 { meta l4proto tcp dnat to [fd00:244::5]:8080; }
  chain service-AAAA-default/web/tcp/http { numgen random mod 1 vmap { 0 : goto endpoint-AAAA-default/web/tcp/http__fd00.244..5/8080 }; }
}
`

/** For `iptables-restore`. */
export const iptablesRules = `*filter
:KUBE-SERVICES - [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-NODEPORTS - [0:0]
-A KUBE-NODEPORTS -m comment --comment "default/local:http health check node port" -m tcp -p tcp --dport 30000 -j ACCEPT
-A KUBE-SERVICES -m comment --comment "default/broken: has no endpoints" -m tcp -p tcp -d 10.96.0.11 --dport 80 -j REJECT
-A KUBE-EXTERNAL-SERVICES -m comment --comment "default/local:http has no local endpoints" -m tcp -p tcp -d 192.0.2.10 --dport 80 -j DROP
COMMIT
*nat
:KUBE-NODEPORTS - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-EXT-AAAA - [0:0]
:KUBE-EXT-BBBB - [0:0]
:KUBE-FW-BBBB - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-SEP-A1 - [0:0]
:KUBE-SEP-A2 - [0:0]
:KUBE-SEP-B1 - [0:0]
:KUBE-SEP-B2 - [0:0]
:KUBE-SEP-C1 - [0:0]
:KUBE-SVC-AAAA - [0:0]
:KUBE-SVC-BBBB - [0:0]
:KUBE-SVC-CCCC - [0:0]
-A KUBE-NODEPORTS -m comment --comment default/web:http -m tcp -p tcp -d 127.0.0.0/8 --dport 30080 -j KUBE-EXT-AAAA
-A KUBE-NODEPORTS -m comment --comment default/web:http -m tcp -p tcp --dport 30080 -j KUBE-EXT-AAAA
-A KUBE-SERVICES -m comment --comment "default/web:http cluster IP" -m tcp -p tcp -d 10.96.0.10 --dport 80 -j KUBE-SVC-AAAA
-A KUBE-SERVICES -m comment --comment "default/sticky:dns cluster IP" -m udp -p udp -d 10.96.0.12 --dport 53 -j KUBE-SVC-CCCC
-A KUBE-SERVICES -m comment --comment "default/local:http cluster IP" -m tcp -p tcp -d 10.96.0.13 --dport 80 -j KUBE-SVC-BBBB
-A KUBE-SERVICES -m comment --comment "default/local:http loadbalancer IP" -m tcp -p tcp -d 192.0.2.10 --dport 80 -j KUBE-FW-BBBB
-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-EXT-AAAA -m comment --comment "masquerade traffic for default/web:http external destinations" -j KUBE-MARK-MASQ
-A KUBE-EXT-AAAA -j KUBE-SVC-AAAA
-A KUBE-EXT-BBBB -m comment --comment "pod traffic for default/local:http external destinations" -s 10.244.0.0/16 -j KUBE-SVC-BBBB
-A KUBE-EXT-BBBB -m comment --comment "masquerade LOCAL traffic for default/local:http external destinations" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ
-A KUBE-EXT-BBBB -m comment --comment "route LOCAL traffic for default/local:http external destinations" -m addrtype --src-type LOCAL -j KUBE-SVC-BBBB
-A KUBE-FW-BBBB -m comment --comment "default/local:http loadbalancer IP" -s 203.0.113.0/25 -j KUBE-EXT-BBBB
-A KUBE-FW-BBBB -m comment --comment "other traffic to default/local:http will be dropped by KUBE-PROXY-FIREWALL"
-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000
-A KUBE-SEP-A1 -m comment --comment default/web:http -s 10.244.1.5 -j KUBE-MARK-MASQ
-A KUBE-SEP-A1 -m comment --comment default/web:http -m tcp -p tcp -j DNAT --to-destination 10.244.1.5:8080
-A KUBE-SEP-A2 -m comment --comment default/web:http -m tcp -p tcp -j DNAT --to-destination 10.244.2.7:8080
-A KUBE-SEP-B1 -m comment --comment default/local:http -m tcp -p tcp -j DNAT --to-destination 10.244.2.8:8080
-A KUBE-SEP-B2 -m comment --comment default/local:http -m tcp -p tcp -j DNAT --to-destination 10.244.3.8:8080
-A KUBE-SEP-C1 -m comment --comment default/sticky:dns -m recent --name KUBE-SEP-C1 --set -m udp -p udp -j DNAT --to-destination 10.244.1.6:5353
-A KUBE-SVC-AAAA -m comment --comment "default/web:http cluster IP" -m tcp -p tcp -d 10.96.0.10 --dport 80 ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ
-A KUBE-SVC-AAAA -m comment --comment "default/web:http -> 10.244.1.5:8080" -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP-A1
-A KUBE-SVC-AAAA -m comment --comment "default/web:http -> 10.244.2.7:8080" -j KUBE-SEP-A2
-A KUBE-SVC-BBBB -m comment --comment "default/local:http -> 10.244.2.8:8080" -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP-B1
-A KUBE-SVC-BBBB -m comment --comment "default/local:http -> 10.244.3.8:8080" -j KUBE-SEP-B2
-A KUBE-SVC-CCCC -m comment --comment "default/sticky:dns -> 10.244.1.6:5353" -m recent --name KUBE-SEP-C1 --rcheck --seconds 10800 --reap -j KUBE-SEP-C1
-A KUBE-SVC-CCCC -m comment --comment "default/sticky:dns -> 10.244.1.6:5353" -j KUBE-SEP-C1
COMMIT
`

/** For `ip6tables-restore`. */
export const ip6tablesRules = `*nat
:KUBE-NODEPORTS - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SEP-A1 - [0:0]
:KUBE-SVC-AAAA - [0:0]
-A KUBE-SERVICES -m comment --comment "default/web:http cluster IP" -m tcp -p tcp -d fd00:96::10 --dport 80 -j KUBE-SVC-AAAA
-A KUBE-SEP-A1 -m comment --comment default/web:http -m tcp -p tcp -j DNAT --to-destination [fd00:244::5]:8080
-A KUBE-SVC-AAAA -m comment --comment "default/web:http -> [fd00:244::5]:8080" -j KUBE-SEP-A1
COMMIT
`
