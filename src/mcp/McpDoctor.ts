/**
 * Says what is wrong with a config, server by server and in words.
 *
 * Every server is looked at, whatever the others are like: its entry is read,
 * what it needs on this computer is looked for, it is connected to and asked
 * for its tools. Nothing is called, and no secret is told.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type { HttpClient } from "effect/http/HttpClient"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { ConfigInvalid } from "../KernelError.ts"
import * as Advice from "./internal/advice.ts"
import * as McpConfig from "./McpConfig.ts"
import * as McpConnection from "./McpConnection.ts"
import * as OAuth from "./OAuth.ts"
import { layerMemory, TokenStore } from "./TokenStore.ts"

/**
 * What was found about one server, or about the config as a whole.
 *
 * @category models
 * @since 0.1.0
 */
export interface Finding {
  /** Undefined for the config itself. */
  readonly server: string | undefined
  readonly state: "ok" | "warning" | "wrong"
  /** What is there, or what is wrong. */
  readonly detail: string
  /** What to do about it. */
  readonly advice: string | undefined
}

/**
 * Looks at a config in YAML. Never fails: what is wrong is a finding.
 *
 * @category running
 * @since 0.1.0
 */
export const examine = Effect.fnUntraced(function* (
  text: string,
  options?: McpConfig.Options
): Effect.fn.Return<
  ReadonlyArray<Finding>,
  never,
  ChildProcessSpawner | HttpClient | FileSystem.FileSystem | Path.Path
> {
  const decoded = yield* Effect.result(McpConfig.inspectYaml(text, options))
  if (Result.isFailure(decoded)) return [entry(undefined, decoded.failure)]
  const findings = yield* Effect.forEach(
    decoded.success,
    ([name, server]) =>
      Result.isFailure(server) ? Effect.succeed([entry(name, server.failure)]) : examineServer(server.success),
    { concurrency: 4 }
  )
  return findings.flat()
})

/**
 * Looks at one server that is configured rightly.
 *
 * @category running
 * @since 0.1.0
 */
export const examineServer = Effect.fnUntraced(function* (
  server: McpConfig.McpServer
): Effect.fn.Return<
  ReadonlyArray<Finding>,
  never,
  ChildProcessSpawner | HttpClient | FileSystem.FileSystem | Path.Path
> {
  const suspicions = server.transport === "stdio" ? shellWords(server) : []
  const missing = server.transport === "stdio" ? yield* findProgram(server) : undefined
  if (missing !== undefined) return [missing, ...suspicions]
  return [...(yield* meet(server)), ...suspicions]
})

/** Connects and asks for what there is. */
const meet = Effect.fnUntraced(function* (server: McpConfig.McpServer) {
  const kept = Option.getOrUndefined(yield* Effect.serviceOption(TokenStore))
  const oauth =
    server.transport === "stdio"
      ? undefined
      : yield* kept === undefined
          ? Effect.provide(OAuth.make(server), layerMemory)
          : Effect.provideService(OAuth.make(server), TokenStore, kept)
  const connection = yield* McpConnection.make(server, { credentials: oauth?.credentials })
  const met = yield* Effect.result(Effect.all([connection.info, connection.tools]))
  if (Result.isFailure(met)) return [wrong(server.name, met.failure.message, Advice.aboutServer(server, met.failure))]
  const [info, tools] = met.success
  const who = [info.name ?? "a server without a name", info.version ?? ""].join(" ").trim()
  const found: Array<Finding> = [
    {
      server: server.name,
      state: "ok",
      detail: `${who}, ${server.transport}, revision ${info.protocolVersion}, ${tools.length} tools`,
      advice: undefined
    }
  ]
  if (tools.length === 0 && "tools" in info.capabilities) {
    found.push(warning(server.name, "it has tools by its own word, but lists none that can be used"))
  }
  return found
}, Effect.scoped)

/** A program that is not there, or a folder: the system calls both by the same name. */
const findProgram = Effect.fnUntraced(function* (server: McpConfig.StdioServer) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const exists = (file: string) => Effect.orElseSucceed(fs.exists(file), () => false)
  const written = server.written ?? server
  if (server.cwd !== undefined && !(yield* exists(server.cwd))) {
    return wrong(server.name, `the folder '${written.cwd}' in 'cwd' of MCP server '${server.name}' does not exist`)
  }
  const { command } = server
  const isPath = command.includes("/") || command.includes("\\")
  const given = server.env.get("PATH")
  const search = given === undefined ? (process.env["PATH"] ?? "") : Redacted.value(given)
  const folders = isPath ? [server.cwd ?? "."] : search.split(path.sep === "\\" ? ";" : ":")
  for (const folder of folders) {
    for (const ending of path.sep === "\\" ? ["", ".exe", ".cmd"] : [""]) {
      if (yield* exists(path.resolve(folder, `${command}${ending}`))) return undefined
    }
  }
  return wrong(
    server.name,
    `the program '${written.command}' of MCP server '${server.name}' ${isPath ? "does not exist" : "is not found in PATH"}`,
    "Install it, or write its path in full."
  )
})

/** Words only a shell would understand: they reach the program as they stand (S-1). */
const shellWords = (server: McpConfig.StdioServer): ReadonlyArray<Finding> =>
  server.args
    .filter((word): word is string => !Redacted.isRedacted(word))
    .filter((word) => /^~(?:\/|$)|\$\(|\$[A-Za-z_]|^(?:&&|\|\||[|;<>])$/.test(word))
    .map((word) =>
      warning(
        server.name,
        `the argument ${JSON.stringify(word)} reaches the program as it stands: no shell sees it`,
        "Write paths in full, and variables as ${NAME} in capitals."
      )
    )

const wrong = (server: string | undefined, detail: string, advice?: string): Finding => ({
  server,
  state: "wrong",
  detail,
  advice
})

const entry = (server: string | undefined, error: ConfigInvalid): Finding =>
  wrong(server, error.reason, Advice.aboutEntry(error))

const warning = (server: string, detail: string, advice?: string): Finding => ({
  server,
  state: "warning",
  detail,
  advice
})
