// JSON for the stub: read, look up, change, write. Texts are UTF-8. Every value is allocated on its own and freed by json_free.
#pragma once
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_TEXT, JSON_ARRAY, JSON_OBJECT } JsonType;

typedef struct Json {
  JsonType type;
  char *key;   // In an object.
  char *text;
  double number;
  struct Json *first;  // Of an array or object.
  struct Json *next;   // The sibling.
} Json;

static Json *json_new(JsonType type) {
  Json *value = calloc(1, sizeof *value);
  value->type = type;
  return value;
}

static Json *json_text(const char *text) {
  Json *value = json_new(JSON_TEXT);
  value->text = _strdup(text);
  return value;
}

static void json_free(Json *value) {
  while (value) {
    Json *next = value->next;
    json_free(value->first);
    free(value->key);
    free(value->text);
    free(value);
    value = next;
  }
}

static void skip_space(const char **at) {
  while (**at && strchr(" \t\r\n", **at)) ++*at;
}

static char *put_utf8(char *out, unsigned code) {
  if (code < 0x80) {
    *out++ = (char)code;
  } else if (code < 0x800) {
    *out++ = (char)(0xC0 | code >> 6);
    *out++ = (char)(0x80 | (code & 63));
  } else {
    *out++ = (char)(0xE0 | code >> 12);
    *out++ = (char)(0x80 | (code >> 6 & 63));
    *out++ = (char)(0x80 | (code & 63));
  }
  return out;
}

// NULL: not a text in quotes.
static char *read_text(const char **at) {
  if (**at != '"') return NULL;
  ++*at;
  char *text = malloc(strlen(*at) * 3 + 1), *out = text;
  while (**at && **at != '"') {
    char c = *(*at)++;
    if (c != '\\') {
      *out++ = c;
      continue;
    }
    c = *(*at)++;
    if (c == 'u') {
      unsigned code = 0;
      sscanf(*at, "%4x", &code);
      *at += 4;
      out = put_utf8(out, code);
    } else {
      const char *names = "ntrbf", *values = "\n\t\r\b\f", *known = strchr(names, c);
      *out++ = known ? values[known - names] : c;
    }
  }
  *out = 0;
  if (**at != '"') {
    free(text);
    return NULL;
  }
  ++*at;
  return text;
}

static Json *read_value(const char **at);

static Json *read_members(const char **at, JsonType type, char close) {
  Json *value = json_new(type), **tail = &value->first;
  ++*at;
  skip_space(at);
  if (**at == close) {
    ++*at;
    return value;
  }
  for (;;) {
    char *key = NULL;
    skip_space(at);
    if (type == JSON_OBJECT) {
      key = read_text(at);
      skip_space(at);
      if (!key || *(*at)++ != ':') break;
    }
    Json *member = read_value(at);
    if (!member) {
      free(key);
      break;
    }
    member->key = key;
    *tail = member;
    tail = &member->next;
    skip_space(at);
    char c = *(*at)++;
    if (c == close) return value;
    if (c != ',') break;
  }
  json_free(value);
  return NULL;
}

static Json *read_value(const char **at) {
  static const struct { const char *word; JsonType type; double number; } words[] = {
    { "true", JSON_BOOLEAN, 1 }, { "false", JSON_BOOLEAN, 0 }, { "null", JSON_NULL, 0 } };
  skip_space(at);
  if (**at == '{') return read_members(at, JSON_OBJECT, '}');
  if (**at == '[') return read_members(at, JSON_ARRAY, ']');
  Json *value = NULL;
  if (**at == '"') {
    char *text = read_text(at);
    if (!text) return NULL;
    value = json_new(JSON_TEXT);
    value->text = text;
    return value;
  }
  for (int i = 0; i < 3; i++) {
    if (strncmp(*at, words[i].word, strlen(words[i].word)) != 0) continue;
    *at += strlen(words[i].word);
    value = json_new(words[i].type);
    value->number = words[i].number;
    return value;
  }
  char *end;
  double number = strtod(*at, &end);
  if (end == *at) return NULL;
  *at = end;
  value = json_new(JSON_NUMBER);
  value->number = number;
  return value;
}

// NULL: not JSON.
static Json *json_parse(const char *text) {
  Json *value = read_value(&text);
  skip_space(&text);
  if (value && *text) {
    json_free(value);
    return NULL;
  }
  return value;
}

// HNS does not care about the case of keys.
static Json *json_get(Json *object, const char *key) {
  for (Json *member = object ? object->first : NULL; member; member = member->next)
    if (member->key && !_stricmp(member->key, key)) return member;
  return NULL;
}

static const char *json_get_text(Json *object, const char *key) {
  Json *member = json_get(object, key);
  return member && member->type == JSON_TEXT ? member->text : NULL;
}

static double json_get_number(Json *object, const char *key) {
  Json *member = json_get(object, key);
  return member ? member->number : 0;
}

static Json *json_members(Json *object, const char *key) {
  Json *member = json_get(object, key);
  return member ? member->first : NULL;
}

static void json_set(Json *object, const char *key, Json *value) {
  Json **place = &object->first;
  while (*place && _stricmp((*place)->key, key) != 0) place = &(*place)->next;
  Json *old = *place;
  value->next = old ? old->next : NULL;
  if (old) old->next = NULL;
  json_free(old);
  free(value->key);
  value->key = _strdup(key);
  *place = value;
}

typedef struct {
  char *text;
  size_t length, room;
} Writer;

static void put(Writer *out, const char *format, ...) {
  va_list values;
  va_start(values, format);
  int length = vsnprintf(NULL, 0, format, values);
  va_end(values);
  if (out->length + length + 1 > out->room) {
    out->room = (out->length + length + 1) * 2;
    out->text = realloc(out->text, out->room);
  }
  va_start(values, format);
  vsnprintf(out->text + out->length, length + 1, format, values);
  va_end(values);
  out->length += length;
}

static void put_text(Writer *out, const char *text) {
  put(out, "\"");
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') put(out, "\\%c", *text);
    else if ((unsigned char)*text < 32) put(out, "\\u%04x", *text);
    else put(out, "%c", *text);
  }
  put(out, "\"");
}

static void put_json(Writer *out, Json *value) {
  switch (value->type) {
    case JSON_NULL: put(out, "null"); return;
    case JSON_BOOLEAN: put(out, value->number ? "true" : "false"); return;
    case JSON_NUMBER: put(out, "%.17g", value->number); return;
    case JSON_TEXT: put_text(out, value->text); return;
    default: break;
  }
  int is_object = value->type == JSON_OBJECT;
  put(out, is_object ? "{" : "[");
  for (Json *member = value->first; member; member = member->next) {
    if (is_object) {
      put_text(out, member->key);
      put(out, ":");
    }
    put_json(out, member);
    if (member->next) put(out, ",");
  }
  put(out, is_object ? "}" : "]");
}
