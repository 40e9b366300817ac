/** An editor: the client of the Agent Client Protocol's own SDK, with `kernai acp` in a process of its own. */
import * as acp from "@agentclientprotocol/sdk"
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import { Readable, Writable } from "node:stream"
import { fileURLToPath } from "node:url"

export const bin = fileURLToPath(new URL("../../bin/kernai.mjs", import.meta.url))

export interface Editor {
  readonly agent: acp.ClientContext
  readonly pid: number
  /** The updates of all sessions, in order of arrival. */
  readonly updates: Array<acp.SessionUpdate>
  /** The questions of the agent. */
  readonly asked: Array<acp.RequestPermissionRequest>
  /** Ends the input of the agent, and waits for its process. */
  readonly leave: Effect.Effect<number | null>
}

export interface EditorOptions {
  readonly cwd: string
  readonly args: ReadonlyArray<string>
  /** Decides about a call. Default: it is rejected. */
  readonly decide?: (asked: acp.RequestPermissionRequest) => acp.RequestPermissionOutcome
  readonly capabilities?: acp.ClientCapabilities
  /** Registers handlers of its own. */
  readonly abilities?: (client: acp.ClientApp) => acp.ClientApp
}

const reject = (): acp.RequestPermissionOutcome => ({ outcome: "selected", optionId: "reject" })

/** Starts an agent and initializes the connection. The process is killed when the scope closes. */
export const editor = (options: EditorOptions): Effect.Effect<Editor, never, Scope.Scope> =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [bin, "acp", ...options.args], {
          cwd: options.cwd,
          env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" },
          stdio: ["pipe", "pipe", "inherit"]
        })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const ended = new Promise<number | null>((resolve) => child.on("close", resolve))
    const updates: Array<acp.SessionUpdate> = []
    const asked: Array<acp.RequestPermissionRequest> = []
    const client = acp
      .client({ name: "an editor" })
      .onNotification("session/update", ({ params }) => void updates.push(params.update))
      .onRequest("session/request_permission", ({ params }) => {
        asked.push(params)
        return { outcome: (options.decide ?? reject)(params) }
      })
    const able = options.abilities?.(client) ?? client
    const { agent } = able.connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)))
    yield* Effect.promise(() =>
      agent.request("initialize", {
        protocolVersion: acp.PROTOCOL_VERSION,
        clientCapabilities: options.capabilities ?? {}
      })
    )
    const leave = Effect.promise(() => {
      child.stdin.end()
      return ended
    })
    return { agent, pid: child.pid ?? 0, updates, asked, leave }
  })

/** Opens a session in a folder. */
export const open = ({ agent }: Editor, cwd: string, mcpServers: Array<acp.McpServer> = []) =>
  Effect.promise(() => agent.request("session/new", { cwd, mcpServers }))

/** Sends a prompt and waits for its end. */
export const prompt = ({ agent }: Editor, sessionId: string, ...parts: ReadonlyArray<string | acp.ContentBlock>) =>
  Effect.promise(() =>
    agent.request("session/prompt", {
      sessionId,
      prompt: parts.map((part): acp.ContentBlock => (typeof part === "string" ? { type: "text", text: part } : part))
    })
  )

/** Returns the text that was streamed in updates of a kind. */
export const textOf = (
  updates: ReadonlyArray<acp.SessionUpdate>,
  kind: "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk" = "agent_message_chunk"
): string =>
  updates
    .map((update) => (update.sessionUpdate === kind && update.content.type === "text" ? update.content.text : ""))
    .join("")
