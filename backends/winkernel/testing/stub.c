// A stub of computenetwork.dll (HCN) over objects in memory, to run the backend under wine. The prototypes come from mingw-w64's
// computenetwork.h, so the compiler checks them against an independent source. Where the stub decides something, a word says why:
//   [doc]    learn.microsoft.com says so        [seen]   a public issue shows that HNS answers so
//   [guess]  nobody has seen HNS do it          [strict] stricter than HNS on purpose, so that mistakes show
#define COBJMACROS
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <objbase.h>
#include <rpc.h>
#include <computenetwork.h>
#include "json.h"

#define API __declspec(dllexport) HRESULT WINAPI
#define NETWORK_NOT_FOUND ((HRESULT)0x803B0001)
#define ENDPOINT_NOT_FOUND ((HRESULT)0x803B0002)
#define INVALID_ENDPOINT ((HRESULT)0x803B000C)
#define INVALID_POLICY ((HRESULT)0x803B000D)
#define PORT_ALREADY_EXISTS ((HRESULT)0x803B0013)
#define INVALID_JSON ((HRESULT)0x803B001B)
#define INVALID_JSON_REFERENCE ((HRESULT)0x803B001C)
#define INVALID_ADDRESS ((HRESULT)0x803B002F)
#define NOT_FOUND ((HRESULT)0x80070490)

typedef enum { NETWORK, ENDPOINT, LOAD_BALANCER } Kind;

typedef struct Object {
  Kind kind;
  GUID id;
  Json *document;
  struct Object *next;
} Object;

typedef struct Handle {
  int is_open;
  Kind kind;
  GUID id;
  struct Handle *next;
} Handle;

// A text that the caller must free.
typedef struct Lent {
  void *memory;
  int is_live;
  struct Lent *next;
} Lent;

static Object *objects;
static Handle *handles;
static Lent *lent;
static Json *settings;  // See HcnStubConfigure.
static Writer calls;    // The names of the functions that were called.
static int bad_handles, double_frees;
static CRITICAL_SECTION lock;

// ---- Texts: COM tells us of every CoTaskMemFree, so that leaks and double frees are counted ----

static HRESULT WINAPI spy_query(IMallocSpy *spy, REFIID id, void **out) { *out = spy; return S_OK; }
static ULONG WINAPI spy_reference(IMallocSpy *spy) { return 1; }
static SIZE_T WINAPI spy_before_alloc(IMallocSpy *spy, SIZE_T size) { return size; }
static void *WINAPI spy_after_alloc(IMallocSpy *spy, void *memory) { return memory; }
static void *WINAPI spy_before_free(IMallocSpy *spy, void *memory, BOOL is_spied) {
  for (Lent *each = lent; each; each = each->next) {
    if (each->memory != memory) continue;
    if (!each->is_live) {
      double_frees++;
      return NULL;
    }
    each->is_live = 0;
    break;
  }
  return memory;
}
static void WINAPI spy_after_free(IMallocSpy *spy, BOOL is_spied) {}
static SIZE_T WINAPI spy_before_realloc(IMallocSpy *spy, void *memory, SIZE_T size, void **out, BOOL is_spied) { *out = memory; return size; }
static void *WINAPI spy_same(IMallocSpy *spy, void *memory, BOOL is_spied) { return memory; }
static SIZE_T WINAPI spy_size(IMallocSpy *spy, SIZE_T size, BOOL is_spied) { return size; }
static int WINAPI spy_did_alloc(IMallocSpy *spy, void *memory, BOOL is_spied, int answer) { return answer; }
static void WINAPI spy_heap(IMallocSpy *spy) {}
static IMallocSpyVtbl spy_functions = { spy_query, spy_reference, spy_reference, spy_before_alloc, spy_after_alloc, spy_before_free,
  spy_after_free, spy_before_realloc, spy_same, spy_same, spy_size, spy_same, spy_did_alloc, spy_heap, spy_heap };
static IMallocSpy spy = { &spy_functions };

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved) {
  if (reason != DLL_PROCESS_ATTACH) return TRUE;
  InitializeCriticalSection(&lock);
  CoRegisterMallocSpy(&spy);
  settings = json_parse("{\"version\":{\"Major\":15,\"Minor\":4}}");
  return TRUE;
}

static char *utf8_of(PCWSTR wide) {
  int size = wide ? WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL) : 1;
  char *text = calloc(1, size);
  if (wide) WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, size, NULL, NULL);
  return text;
}

static void lend(PWSTR *out, Writer *from) {
  const char *text = from->text ? from->text : "";
  int length = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
  PWSTR wide = CoTaskMemAlloc(length * sizeof *wide);
  MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, length);
  free(from->text);
  Lent *known = lent;
  while (known && known->memory != wide) known = known->next;  // COM uses freed memory again.
  if (!known) {
    known = malloc(sizeof *known);
    *known = (Lent){ wide, 0, lent };
    lent = known;
  }
  known->is_live = 1;
  *out = wide;
}

// ---- Objects and handles ----

static const char *guid_text(const GUID *id) {
  static char text[40];
  snprintf(text, sizeof text, "%08lx-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", id->Data1, id->Data2, id->Data3, id->Data4[0],
    id->Data4[1], id->Data4[2], id->Data4[3], id->Data4[4], id->Data4[5], id->Data4[6], id->Data4[7]);
  return text;
}

static Object *find(Kind kind, const GUID *id) {
  for (Object *each = objects; each; each = each->next)
    if (each->kind == kind && IsEqualGUID(&each->id, id)) return each;
  return NULL;
}

static Object *find_text(Kind kind, const char *text) {
  GUID id;
  return text && UuidFromStringA((RPC_CSTR)text, &id) == RPC_S_OK ? find(kind, &id) : NULL;
}

static Object *add(Kind kind, Json *document) {
  Object *object = malloc(sizeof *object), **tail = &objects;
  *object = (Object){ kind, GUID_NULL, document, NULL };
  UuidCreate(&object->id);
  json_set(document, "ID", json_text(guid_text(&object->id)));
  while (*tail) tail = &(*tail)->next;
  *tail = object;
  return object;
}

static void *open_handle(Object *object) {
  Handle *handle = malloc(sizeof *handle);
  *handle = (Handle){ 1, object->kind, object->id, handles };
  handles = handle;
  return handle;
}

// Never follows a handle that it did not give.
static Handle *check_handle(void *given, Kind kind) {
  for (Handle *each = handles; each; each = each->next)
    if (each == given && each->is_open && each->kind == kind) return each;
  bad_handles++;
  return NULL;
}

// ---- Every call: locked, logged, and failing if a test wants it ----

// [seen] {"Success":false,"Error":"An address provided is invalid or reserved. ","ErrorCode":2151350319}
static HRESULT fail(HRESULT result, const char *text, PWSTR *record) {
  if (!record) return result;
  Writer out = { 0 };
  put(&out, "{\"Success\":false,\"Error\":");
  put_text(&out, text);
  put(&out, ",\"ErrorCode\":%u}", (unsigned)result);
  lend(record, &out);
  return result;
}

// `fail` in the settings is a list of { call, code, times, after, silent }. `*` is any call; `silent` leaves out the record.
static HRESULT enter(const char *call, PWSTR *record) {
  EnterCriticalSection(&lock);
  if (record) *record = NULL;
  put(&calls, "%s\"%s\"", calls.length ? "," : "", call);
  for (Json *fault = json_members(settings, "fail"); fault; fault = fault->next) {
    const char *name = json_get_text(fault, "call");
    Json *times = json_get(fault, "times"), *after = json_get(fault, "after");
    if (strcmp(name, "*") != 0 && strcmp(name, call) != 0) continue;
    if (after && after->number > 0) {
      after->number--;
      continue;
    }
    if (times->number <= 0) continue;
    times->number--;
    HRESULT code = (HRESULT)(UINT)json_get_number(fault, "code");
    return json_get_number(fault, "silent") ? code : fail(code, "injected", record);
  }
  return S_OK;
}

static HRESULT leave(HRESULT result) {
  LeaveCriticalSection(&lock);
  return result;
}

// ---- What HNS refuses ----

static int has_only(Json *object, const char *const *names, const char **why) {
  for (Json *member = object->first; member; member = member->next) {
    const char *const *name = names;
    while (*name && strcmp(*name, member->key) != 0) name++;
    if (!*name) {
      *why = "a field is not known";
      return 0;
    }
  }
  return 1;
}

// 4, 6, or 0 if it is not an IP address.
static int family_of(const char *text, unsigned char bytes[16]) {
  if (!text) return 0;
  if (inet_pton(AF_INET, text, bytes) == 1) return 4;
  return inet_pton(AF_INET6, text, bytes) == 1 ? 6 : 0;
}

static int is_inside(const char *address, const char *prefix) {
  unsigned char a[16], b[16];
  char network[80];
  snprintf(network, sizeof network, "%s", prefix ? prefix : "");
  char *slash = strchr(network, '/');
  if (!slash) return 0;
  *slash = 0;
  int family = family_of(address, a);
  if (!family || family_of(network, b) != family) return 0;
  for (int bit = 0; bit < atoi(slash + 1); bit++)
    if ((a[bit / 8] ^ b[bit / 8]) >> (7 - bit % 8) & 1) return 0;
  return 1;
}

static int is_in_subnets(Json *network, const char *address) {
  for (Json *ipam = json_members(network, "Ipams"); ipam; ipam = ipam->next)
    for (Json *subnet = json_members(ipam, "Subnets"); subnet; subnet = subnet->next)
      if (is_inside(address, json_get_text(subnet, "IpAddressPrefix"))) return 1;
  return 0;
}

static int is_taken(Object *network, const char *address) {
  for (Object *each = objects; each; each = each->next) {
    if (each->kind != ENDPOINT || find_text(NETWORK, json_get_text(each->document, "HostComputeNetwork")) != network) continue;
    for (Json *ip = json_members(each->document, "IpConfigurations"); ip; ip = ip->next)
      if (!strcmp(json_get_text(ip, "IpAddress"), address)) return 1;
  }
  return 0;
}

static int has_provider_address(Json *endpoint) {
  unsigned char bytes[16];
  for (Json *policy = json_members(endpoint, "Policies"); policy; policy = policy->next) {
    const char *type = json_get_text(policy, "Type");
    if (type && !strcmp(type, "ProviderAddress"))
      return family_of(json_get_text(json_get(policy, "Settings"), "ProviderAddress"), bytes) != 0;
  }
  return 0;
}

// [guess] HNS chooses the addresses of an endpoint without any: one of each subnet. Docker lets it choose for NAT networks.
static void choose_addresses(Object *network, Json *endpoint) {
  Writer list = { 0 };
  put(&list, "[");
  for (Json *ipam = json_members(network->document, "Ipams"); ipam; ipam = ipam->next)
    for (Json *subnet = json_members(ipam, "Subnets"); subnet; subnet = subnet->next) {
      char start[80], address[90];
      snprintf(start, sizeof start, "%s", json_get_text(subnet, "IpAddressPrefix"));
      *strchr(start, '/') = 0;
      if (strchr(start, '.')) strrchr(start, '.')[1] = 0;
      int last = 10;
      do snprintf(address, sizeof address, "%s%d", start, last++);
      while (is_taken(network, address));
      put(&list, "%s{\"IpAddress\":\"%s\"}", list.length > 1 ? "," : "", address);
    }
  put(&list, "]");
  json_set(endpoint, "IpConfigurations", json_parse(list.text));
  free(list.text);
}

static HRESULT check_endpoint(Object *network, Json *endpoint, const char **why) {
  static const char *const names[] = { "Name", "HostComputeNetwork", "IpConfigurations", "MacAddress", "Flags", "Policies", "SchemaVersion", NULL };
  if (!has_only(endpoint, names, why)) return INVALID_JSON;  // [strict]
  int is_remote = (int)json_get_number(endpoint, "Flags") & 1;
  const char *mac = json_get_text(endpoint, "MacAddress"), *type = json_get_text(network->document, "Type");
  Json *ips = json_members(endpoint, "IpConfigurations");
  *why = "The endpoint configuration is invalid. ";
  if (is_remote && (!ips || !mac)) return INVALID_ENDPOINT;                                               // [guess]
  if (mac && (strlen(mac) != 17 || strspn(mac, "0123456789abcdefABCDEF-:") != 17)) return INVALID_ENDPOINT;  // [guess]
  *why = "An address provided is invalid or reserved. ";
  for (Json *ip = ips; ip; ip = ip->next) {
    unsigned char bytes[16];
    const char *address = json_get_text(ip, "IpAddress");
    if (!family_of(address, bytes)) return INVALID_ADDRESS;
    if (!is_remote && !is_in_subnets(network->document, address)) return INVALID_ADDRESS;  // [seen] 100962, a source VIP
    // [seen] 130963; Windows Server 2019 and 2022 let it pass at times: 138000
    if (!json_get_number(settings, "allowDuplicateIps") && is_taken(network, address)) return INVALID_ADDRESS;
  }
  *why = "The provided policy configuration is invalid or missing parameters. ";
  if (is_remote && type && !_stricmp(type, "Overlay") && !has_provider_address(endpoint)) return INVALID_POLICY;  // [guess]
  return S_OK;
}

static int same_frontend(Json *a, Json *b) {
  Json *port = json_members(a, "PortMappings"), *other = json_members(b, "PortMappings");
  Json *vip = json_members(a, "FrontendVIPs"), *other_vip = json_members(b, "FrontendVIPs");
  if (!port || !other || (((int)json_get_number(a, "Flags") ^ (int)json_get_number(b, "Flags")) & 2)) return 0;
  if (!vip != !other_vip || (vip && strcmp(vip->text, other_vip->text) != 0)) return 0;
  return json_get_number(port, "Protocol") == json_get_number(other, "Protocol") &&
    json_get_number(port, "ExternalPort") == json_get_number(other, "ExternalPort");
}

static HRESULT check_balancer(Json *balancer, Object *self, const char **why) {
  static const char *const names[] = { "HostComputeEndpoints", "SourceVIP", "FrontendVIPs", "PortMappings", "SchemaVersion", "Flags", NULL };
  static const char *const port_names[] = { "Protocol", "InternalPort", "ExternalPort", "DistributionType", "Flags", NULL };
  if (!has_only(balancer, names, why)) return INVALID_JSON;  // [strict]
  unsigned char bytes[16];
  Json *endpoints = json_members(balancer, "HostComputeEndpoints"), *ports = json_members(balancer, "PortMappings");
  *why = "The reference is invalid in the JSON document. A Reference is required";
  if (!endpoints) return INVALID_JSON_REFERENCE;  // [seen] 100384
  *why = "The endpoint was not found. ";
  for (Json *each = endpoints; each; each = each->next)
    if (!find_text(ENDPOINT, each->text)) return ENDPOINT_NOT_FOUND;  // [guess]
  *why = "The provided policy configuration is invalid or missing parameters. ";
  const char *source = json_get_text(balancer, "SourceVIP");
  if (source && !family_of(source, bytes)) return INVALID_POLICY;  // [guess]
  int is_ipv6 = ((int)json_get_number(balancer, "Flags") & 2) != 0;
  for (Json *vip = json_members(balancer, "FrontendVIPs"); vip; vip = vip->next)
    if (family_of(vip->text, bytes) != (is_ipv6 ? 6 : 4)) return INVALID_POLICY;  // [guess]
  if (!ports) return INVALID_POLICY;  // [seen] aws/containers-roadmap 240
  for (Json *port = ports; port; port = port->next) {
    int protocol = (int)json_get_number(port, "Protocol");
    if (!has_only(port, port_names, why)) return INVALID_JSON;  // [strict]
    if (protocol != 6 && protocol != 17 && protocol != 132) return INVALID_POLICY;
    if (!json_get_number(port, "InternalPort") || !json_get_number(port, "ExternalPort")) return INVALID_POLICY;
  }
  *why = "The specified port already exists. ";
  for (Object *each = objects; each; each = each->next)
    if (each->kind == LOAD_BALANCER && each != self && same_frontend(each->document, balancer)) {
      HRESULT other = (HRESULT)(UINT)json_get_number(settings, "duplicateCode");  // [seen] 139519: 0x800700b7
      return other ? other : PORT_ALREADY_EXISTS;                                 // [seen] 137530
    }
  return S_OK;
}

// ---- The API ----

static HRESULT enumerate(Kind kind, const char *call, PCWSTR query, PWSTR *out, PWSTR *record) {
  *out = NULL;
  HRESULT result = enter(call, record);
  if (result) return leave(result);
  char *text = utf8_of(query);
  Json *document = json_parse(text);
  free(text);
  if (!document) return leave(fail(INVALID_JSON, "The provided JSON document is invalid. ", record));
  const char *filter_text = json_get_text(document, "Filter");
  Json *filter = filter_text ? json_parse(filter_text) : NULL;
  Writer ids = { 0 };
  put(&ids, "[");
  for (Object *each = objects; each; each = each->next) {
    int is_wanted = each->kind == kind;
    for (Json *want = filter ? filter->first : NULL; want && is_wanted; want = want->next) {
      // hcsshim filters endpoints by the name that the field had in schema 1.
      const char *field = !_stricmp(want->key, "VirtualNetwork") ? "HostComputeNetwork" : want->key;
      const char *value = json_get_text(each->document, field);
      is_wanted = value && !_stricmp(value, want->text);
    }
    if (is_wanted) put(&ids, "%s\"%s\"", ids.length > 1 ? "," : "", guid_text(&each->id));
  }
  put(&ids, "]");
  json_free(document);
  json_free(filter);
  lend(out, &ids);
  return leave(S_OK);
}

static HRESULT open(Kind kind, const char *call, REFGUID id, void **handle, PWSTR *record) {
  *handle = NULL;
  HRESULT result = enter(call, record);
  if (result) return leave(result);
  Object *object = find(kind, id);
  if (!object) return leave(fail(NOT_FOUND, "Element not found. ", record));  // [seen] hcsshim's tests, for namespaces
  *handle = open_handle(object);
  return leave(S_OK);
}

static HRESULT query(Kind kind, const char *call, void *given, PWSTR *out, PWSTR *record) {
  *out = NULL;
  HRESULT result = enter(call, record);
  if (result) return leave(result);
  Handle *handle = check_handle(given, kind);
  if (!handle) return leave(fail(E_HANDLE, "The handle is invalid. ", record));  // [guess]
  Object *object = find(kind, &handle->id);
  if (!object) return leave(fail(NOT_FOUND, "Element not found. ", record));
  Writer document = { 0 };
  put_json(&document, object->document);
  lend(out, &document);
  return leave(S_OK);
}

// [seen] 76316: endpoints that load balancers hold can be deleted
static HRESULT delete(Kind kind, const char *call, REFGUID id, PWSTR *record) {
  HRESULT result = enter(call, record);
  if (result) return leave(result);
  Object **place = &objects, *object = find(kind, id);
  if (!object) return leave(fail(NOT_FOUND, "Element not found. ", record));
  while (*place != object) place = &(*place)->next;
  *place = object->next;
  json_free(object->document);
  free(object);
  return leave(S_OK);
}

static HRESULT close(void *given, Kind kind) {
  EnterCriticalSection(&lock);
  Handle *handle = check_handle(given, kind);
  if (handle) handle->is_open = 0;
  return leave(handle ? S_OK : E_HANDLE);
}

static HRESULT create(Kind kind, Object *network, PCWSTR text, void **handle, PWSTR *record) {
  char *utf8 = utf8_of(text);
  Json *document = json_parse(utf8);
  free(utf8);
  const char *why = "The provided JSON document is invalid. ";
  HRESULT result = S_OK;
  if (!document || json_get_number(json_get(document, "SchemaVersion"), "Major") != 2) result = INVALID_JSON;  // [strict]
  else if (kind == ENDPOINT) result = check_endpoint(network, document, &why);
  else if (kind == LOAD_BALANCER) result = check_balancer(document, NULL, &why);
  if (result) {
    json_free(document);
    return leave(fail(result, why, record));
  }
  if (kind == ENDPOINT) {
    json_set(document, "HostComputeNetwork", json_text(guid_text(&network->id)));
    if (!json_get(document, "IpConfigurations")) choose_addresses(network, document);
  }
  *handle = open_handle(add(kind, document));
  return leave(S_OK);
}

#define FUNCTIONS(NAME, KIND, TYPE) \
  API HcnEnumerate##NAME##s(PCWSTR text, PWSTR *out, PWSTR *record) { return enumerate(KIND, "HcnEnumerate" #NAME "s", text, out, record); } \
  API HcnOpen##NAME(REFGUID id, TYPE *handle, PWSTR *record) { return open(KIND, "HcnOpen" #NAME, id, handle, record); } \
  API HcnQuery##NAME##Properties(TYPE handle, PCWSTR text, PWSTR *out, PWSTR *record) { return query(KIND, "HcnQuery" #NAME "Properties", handle, out, record); } \
  API HcnDelete##NAME(REFGUID id, PWSTR *record) { return delete(KIND, "HcnDelete" #NAME, id, record); } \
  API HcnClose##NAME(TYPE handle) { return close(handle, KIND); }
FUNCTIONS(Network, NETWORK, HCN_NETWORK)
FUNCTIONS(Endpoint, ENDPOINT, HCN_ENDPOINT)
FUNCTIONS(LoadBalancer, LOAD_BALANCER, HCN_LOADBALANCER)

API HcnCreateNetwork(REFGUID id, PCWSTR text, PHCN_NETWORK handle, PWSTR *record) {
  *handle = NULL;
  HRESULT result = enter("HcnCreateNetwork", record);
  return result ? leave(result) : create(NETWORK, NULL, text, handle, record);
}

API HcnCreateEndpoint(HCN_NETWORK given, REFGUID id, PCWSTR text, PHCN_ENDPOINT handle, PWSTR *record) {
  *handle = NULL;
  HRESULT result = enter("HcnCreateEndpoint", record);
  if (result) return leave(result);
  Handle *opened = check_handle(given, NETWORK);
  Object *network = opened ? find(NETWORK, &opened->id) : NULL;
  if (!network) return leave(fail(opened ? NETWORK_NOT_FOUND : E_HANDLE, "The network was not found. ", record));
  return create(ENDPOINT, network, text, handle, record);
}

API HcnCreateLoadBalancer(REFGUID id, PCWSTR text, PHCN_LOADBALANCER handle, PWSTR *record) {
  *handle = NULL;
  HRESULT result = enter("HcnCreateLoadBalancer", record);
  if (!result) return create(LOAD_BALANCER, NULL, text, handle, record);
  // [seen] 141489: a creation that fails can leave a load balancer without port mappings
  if (json_get_number(settings, "leavesHalf")) add(LOAD_BALANCER, json_new(JSON_OBJECT));
  return leave(result);
}

API HcnModifyLoadBalancer(HCN_LOADBALANCER given, PCWSTR text, PWSTR *record) {
  HRESULT result = enter("HcnModifyLoadBalancer", record);
  if (result) return leave(result);
  Json *version = json_get(settings, "version");
  if (json_get_number(version, "Major") * 1000 + json_get_number(version, "Minor") < 15004)
    return leave(fail(E_NOTIMPL, "Not implemented ", record));
  Handle *handle = check_handle(given, LOAD_BALANCER);
  Object *object = handle ? find(LOAD_BALANCER, &handle->id) : NULL;
  if (!object) return leave(fail(handle ? NOT_FOUND : E_HANDLE, "Element not found. ", record));
  char *utf8 = utf8_of(text);
  Json *document = json_parse(utf8);
  free(utf8);
  const char *why = "The provided JSON document is invalid. ";
  result = document ? check_balancer(document, object, &why) : INVALID_JSON;
  if (result || json_get_number(settings, "ignoresModify")) {  // [seen] 131466, HNS 15.4
    json_free(document);
    return leave(result ? fail(result, why, record) : S_OK);
  }
  json_set(document, "ID", json_text(guid_text(&object->id)));
  json_free(object->document);
  object->document = document;
  return leave(S_OK);
}

// [guess] POST /endpoints/<ID>/attach. Without network interfaces there is nothing to attach.
static int is_attached(PCWSTR method, PCWSTR path) {
  char *text = utf8_of(path), *start = strstr(text, "/endpoints/"), *end = strstr(text, "/attach");
  if (end) *end = 0;
  int is_known = !wcscmp(method, L"POST") && start && end && find_text(ENDPOINT, start + strlen("/endpoints/"));
  free(text);
  return is_known;
}

// vmcompute.dll exports it as HNSCall: GET /globals/version, and the attaching of an endpoint to the machine.
API HcnStubHNSCall(PCWSTR method, PCWSTR path, PCWSTR text, PWSTR *out) {
  *out = NULL;
  HRESULT result = enter("HNSCall", NULL);
  if (result) return leave(result);
  Writer answer = { 0 };
  if (!wcscmp(path, L"/globals/version")) {
    put(&answer, "{\"Success\":true,\"Output\":");
    put_json(&answer, json_get(settings, "version"));
    put(&answer, "}");
  } else if (is_attached(method, path)) put(&answer, "{\"Success\":true}");
  else put(&answer, "{\"Success\":false,\"Error\":\"Element not found. \"}");
  lend(out, &answer);
  return leave(S_OK);
}

// ---- For tests ----

// Sets version, fail, leavesHalf, ignoresModify, allowDuplicateIps, duplicateCode; forgets the calls so far.
API HcnStubConfigure(PCWSTR text) {
  EnterCriticalSection(&lock);
  char *utf8 = utf8_of(text);
  Json *changes = json_parse(utf8);
  free(utf8);
  if (!changes) return leave(E_INVALIDARG);
  for (Json *change = changes->first, *next; change; change = next) {
    char key[60];
    snprintf(key, sizeof key, "%s", change->key);
    next = change->next;
    change->next = NULL;
    json_set(settings, key, change);
  }
  changes->first = NULL;
  json_free(changes);
  calls.length = 0;
  return leave(S_OK);
}

// Counts, leaks, and the calls since the last configuration. `dangling`: load balancers that hold an endpoint that is gone.
API HcnStubState(PWSTR *out) {
  EnterCriticalSection(&lock);
  int count[3] = { 0 }, dangling = 0, live = 0, open_handles = 0;
  for (Object *each = objects; each; each = each->next) {
    count[each->kind]++;
    Json *endpoints = each->kind == LOAD_BALANCER ? json_members(each->document, "HostComputeEndpoints") : NULL;
    for (Json *id = endpoints; id; id = id->next) dangling += !find_text(ENDPOINT, id->text);
  }
  for (Lent *each = lent; each; each = each->next) live += each->is_live;
  for (Handle *each = handles; each; each = each->next) open_handles += each->is_open;
  Writer state = { 0 };
  put(&state, "{\"networks\":%d,\"endpoints\":%d,\"loadBalancers\":%d,\"dangling\":%d,\"openHandles\":%d,\"liveTexts\":%d,",
    count[NETWORK], count[ENDPOINT], count[LOAD_BALANCER], dangling, open_handles, live);
  put(&state, "\"doubleFrees\":%d,\"badHandles\":%d,\"calls\":[%s]}", double_frees, bad_handles, calls.length ? calls.text : "");
  lend(out, &state);
  return leave(S_OK);
}
