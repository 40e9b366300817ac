/**
 * One server as the hub keeps it: connected or not, and which of its tools are shown.
 *
 * A list is judged by the pins: a tool that is defined another way than it was
 * accepted, that repeats a name, or that is new when there is no room for more
 * pins, is hidden and cannot be called (S-8). No pin is ever dropped: what a
 * tool was when it was accepted is known however often its server renames it.
 */

import type * as McpSchema from "effect/ai/McpSchema"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { McpError } from "../../KernelError.ts"
import type { Limits } from "../../Limits.ts"
import type { McpServer } from "../McpConfig.ts"
import type { McpConnection, ServerInfo } from "../McpConnection.ts"
import type { OAuth } from "../OAuth.ts"
import type { ToolPins } from "../ToolPins.ts"
import * as Challenge from "./challenge.ts"
import * as Definition from "./definition.ts"
import { some } from "./nameList.ts"

/** Why a tool is not shown. */
export type Hidden = "changed" | "repeated" | "excess"

/** A tool, and whether it may be used. */
export interface StationTool extends Definition.Definition {
  readonly hidden: Hidden | undefined
}

/** One server of a hub. */
export class Station {
  readonly server: McpServer
  readonly connection: McpConnection
  readonly oauth: OAuth | undefined
  tools: ReadonlyArray<StationTool> = []
  info: ServerInfo | undefined
  /** What went wrong when it was last asked; before the first time nothing is known. */
  problem: McpError | undefined
  private listed: ReadonlyArray<McpSchema.Tool> | undefined
  private readonly pins: ToolPins["Service"]
  private readonly one = Semaphore.makeUnsafe(1)

  constructor(connection: McpConnection, oauth: OAuth | undefined, pins: ToolPins["Service"]) {
    this.server = connection.server
    this.connection = connection
    this.oauth = oauth
    this.pins = pins
  }

  get name(): string {
    return this.server.name
  }

  /** The tools that may be shown and called. */
  get shown(): ReadonlyArray<StationTool> {
    return this.tools.filter((tool) => tool.hidden === undefined)
  }

  /**
   * The time a call may take, a person's time to allow it included. The connection keeps the time itself and tells
   * the server when it gives up; this is for what it cannot see.
   */
  timeout({ cleanUpTimeout }: Limits): Duration.Duration {
    const { connectTimeout, timeout } = this.server
    const times = [timeout, connectTimeout, this.oauth?.patience ?? Duration.zero]
    return times.reduce((sum, time) => Duration.sum(sum, Duration.fromInputUnsafe(time)), cleanUpTimeout)
  }

  /** Reads the list if there is a new one; tells whether anything is different now. No person is asked to allow it. */
  readonly read: Effect.Effect<boolean, McpError> = Effect.suspend(() =>
    Effect.provideService(this.one.withPermits(1)(this.readOnce), Challenge.Attended, false)
  )

  /** Accepts a hidden tool as it was shown, unless it changed again. */
  approve(name: string, hash: string): Effect.Effect<boolean> {
    return this.one.withPermits(1)(
      Effect.gen({ self: this }, function* () {
        // One that repeats the name of another is never the first of it.
        const tool = this.tools.find(({ tool }) => tool.name === name)
        if (tool?.hidden === undefined || tool.hash !== hash) return false
        yield* this.pins.save(this.name, new Map(yield* this.pins.load(this.name)).set(name, hash))
        yield* this.judge(this.tools)
        return true
      })
    )
  }

  private readonly readOnce = Effect.gen({ self: this }, function* () {
    const before = this.problem
    const listed = yield* Effect.tapError(this.connection.tools, (problem) =>
      Effect.sync(() => {
        this.problem = problem
      })
    )
    this.info = yield* this.connection.info
    this.problem = undefined
    if (listed === this.listed) return before !== undefined
    yield* this.judge(yield* Effect.forEach(listed, Definition.make))
    this.listed = listed
    return true
  })

  private readonly judge = Effect.fnUntraced(
    { self: this },
    function* (definitions: ReadonlyArray<Definition.Definition>) {
      const pins = new Map(yield* this.pins.load(this.name))
      const known = pins.size
      const hiddenBefore = new Set(this.tools.filter((tool) => tool.hidden !== undefined).map((tool) => tool.hash))
      const seen = new Set<string>()
      const accept = accepter(pins)
      const tools = definitions.map((definition): StationTool => {
        const { name } = definition.tool
        const hidden = seen.has(name) ? "repeated" : accept(name, definition.hash)
        seen.add(name)
        return { ...definition, hidden }
      })
      if (pins.size > known) yield* this.pins.save(this.name, pins)
      this.tools = tools
      for (const [reason, why] of Object.entries(reasons)) {
        const news = tools.filter(({ hash, hidden }) => hidden === reason && !hiddenBefore.has(hash))
        if (news.length === 0) continue
        const names = some(news.map(({ tool }) => tool.name))
        yield* Effect.logWarning(`MCP server '${this.name}' has tools that are hidden (${names}), each ${why}`)
      }
    }
  )
}

/** Why a tool is hidden, in words. */
export const reasons: { readonly [reason in Hidden]: string } = {
  changed: "because its definition changed since it was accepted; approve it to use it again",
  repeated: "because another tool of the server has the same name",
  excess: "because so many tools of the server were accepted that no more are by themselves; approve it to use it"
}

/** Accepts what is new as it is, as long as there is room for its pin; tells why a tool is hidden. */
const accepter = (pins: Map<string, string>) => {
  let room = maxPinned - JSON.stringify([...pins]).length
  return (name: string, hash: string): Hidden | undefined => {
    const pinned = pins.get(name)
    if (pinned !== undefined) return pinned === hash ? undefined : "changed"
    const size = JSON.stringify([name, hash]).length + 1
    if (size > room) return "excess"
    pins.set(name, hash)
    room -= size
    return undefined
  }
}

// The pins of one server as they are stored: some thousand names of a usual length.
const maxPinned = 256 * 1024
