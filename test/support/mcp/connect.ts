/** Connections to the servers of the tests. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import type { McpSchema } from "effect/ai"
import { FetchHttpClient } from "effect/http"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { McpConfig, McpConnection } from "kernai/mcp"
import { folder } from "../folder.ts"

/** What connections need. */
export const platform = Layer.mergeAll(NodeServices.layer, FetchHttpClient.layer)

const here = (file: string) => fileURLToPath(new URL(file, import.meta.url))
const installed = (file: string) => fileURLToPath(new URL(`../../../node_modules/${file}`, import.meta.url))

export const hostileScript = here("hostile.mjs")
export const hostScript = here("host.ts")
export const everythingScript = installed("@modelcontextprotocol/server-everything/dist/index.js")
export const filesystemScript = installed("@modelcontextprotocol/server-filesystem/dist/index.js")

/** A file for what a server notes down. */
export const sideFile = Effect.map(folder, (folder) => path.join(folder, "side"))

/** The lines a server noted down. */
export const lines = (file: string): ReadonlyArray<string> =>
  fs.existsSync(file) ? fs.readFileSync(file, "utf8").split("\n").slice(0, -1) : []

/** Connects to what one entry of a config says. */
export const connect = Effect.fnUntraced(function* (
  settings: { readonly [key: string]: unknown },
  options?: {
    readonly credentials?: McpConnection.Credentials
    readonly host?: McpConnection.Host
    readonly env?: { readonly [name: string]: string }
  }
) {
  const config = yield* McpConfig.fromValue({ servers: { it: settings } }, { env: options?.env })
  for (const server of config.servers.values()) return yield* McpConnection.make(server, options)
  return yield* Effect.die("no server")
})

export const node = (script: string, ...args: ReadonlyArray<string>) => ({
  command: process.execPath,
  args: [script, ...args]
})

/** The hostile server, in a mode. */
export const hostile = (mode = "", side = "", more: { readonly [key: string]: unknown } = {}) =>
  connect({ ...node(hostileScript, mode, side), ...more })

/** The first text of a result. */
export const textOf = (result: McpSchema.CallToolResult): string => {
  const [first] = result.content
  return first?.type === "text" ? first.text : `no text but ${first?.type}`
}

/** Is a process still there? One that only waits to be collected is not. */
export const isAlive = (pid: number): boolean => {
  try {
    return !fs.readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ")
  } catch {
    return false
  }
}

/** Has a child process ended, and has this process read its exit? Node emits `exit` at the same moment. */
export const isCollected = (pid: number): boolean => !fs.existsSync(`/proc/${pid}`)

export { until } from "../until.ts"
