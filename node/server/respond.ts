import type { ServerResponse } from 'node:http'

// Answers in the way of kube-proxy's handlers.

const nosniff = { 'X-Content-Type-Options': 'nosniff' }

export function sendText(response: ServerResponse, code: number, text: string): void {
  response.writeHead(code, { ...nosniff, 'Content-Type': 'text/plain; charset=utf-8' }).end(text)
}

export function sendJson(response: ServerResponse, code: number, value: object): void {
  response.writeHead(code, { ...nosniff, 'Content-Type': 'application/json' }).end(JSON.stringify(value))
}
