/**
 * One MCP server, kept connected.
 *
 * The connection opens with the first use and again after the server was
 * restarted or forgot the session; then its lists are read anew. A request is
 * sent a second time only when the first one cannot have done anything, or may
 * be done twice: a write that was cut off fails with `outcome_unknown` and is
 * never repeated (R-2, S-18). When the scope closes, no process, socket or
 * timer is left.
 *
 * @since 0.1.0
 */

import type * as McpSchema from "effect/ai/McpSchema"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { McpError } from "../KernelError.ts"
import { Limits } from "../Limits.ts"
import * as Http from "./internal/http.ts"
import * as Lifeline from "./internal/reconnect.ts"
import { usableTools } from "./internal/schemas.ts"
import * as Session from "./internal/mcpSession.ts"
import * as Verdict from "./internal/requestFailure.ts"
import type { McpServer, ProtocolVersion } from "./McpConfig.ts"

export {
  /**
   * An MCP server cannot be reached, understood or used.
   *
   * @category errors
   * @since 0.1.0
   */
  McpError
} from "../KernelError.ts"

/**
 * Which of a server's lists changed.
 *
 * @category models
 * @since 0.1.0
 */
export type Change = "tools" | "resources" | "prompts"

/**
 * What the server said about itself.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServerInfo {
  readonly protocolVersion: ProtocolVersion
  readonly name: string | undefined
  readonly version: string | undefined
  readonly instructions: string | undefined
  readonly capabilities: Readonly<Record<string, unknown>>
}

/**
 * Where access tokens come from.
 *
 * @category models
 * @since 0.1.0
 */
export interface Credentials {
  /** The token to send now, if there is one. */
  readonly accessToken: Effect.Effect<Option.Option<Redacted.Redacted<string>>>
  /** Called when the server asked for a sign-in, or for one that allows more; true when another token is there now. */
  readonly renew: (challenge: string) => Effect.Effect<boolean, McpError>
}

/**
 * How one tool is called.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallOptions {
  /**
   * Whether a call that was cut off may be made again. Default: only that of a tool that says so itself, on a server
   * whose word is trusted (AC-15).
   */
  readonly repeatable?: boolean | undefined
  readonly timeout?: Duration.Input | undefined
  /**
   * Asked about the tool as the connected server describes it, right before the call is sent:
   * what was approved before a restart need not be what is there after it (S-8).
   */
  readonly accepts?: ((tool: McpSchema.Tool) => boolean) | undefined
}

/**
 * One MCP server.
 *
 * @category models
 * @since 0.1.0
 */
export interface McpConnection {
  readonly server: McpServer
  /** Connects, if that has not happened yet. */
  readonly info: Effect.Effect<ServerInfo, McpError>
  /** All tools; kept until the server says that they changed, or is connected again. */
  readonly tools: Effect.Effect<ReadonlyArray<McpSchema.Tool>, McpError>
  readonly resources: Effect.Effect<ReadonlyArray<McpSchema.Resource>, McpError>
  readonly resourceTemplates: Effect.Effect<ReadonlyArray<McpSchema.ResourceTemplate>, McpError>
  readonly prompts: Effect.Effect<ReadonlyArray<McpSchema.Prompt>, McpError>
  /** Forgets its lists, so that the server is asked for the next one: not every server says that its lists changed. */
  readonly forget: Effect.Effect<void>
  /** Calls a tool by the name it has on the server. */
  readonly callTool: (
    name: string,
    input: { readonly [key: string]: unknown },
    options?: CallOptions
  ) => Effect.Effect<McpSchema.CallToolResult, McpError>
  readonly readResource: (uri: string) => Effect.Effect<McpSchema.ReadResourceResult, McpError>
  readonly getPrompt: (
    name: string,
    input?: { readonly [key: string]: string }
  ) => Effect.Effect<McpSchema.GetPromptResult, McpError>
  /**
   * Waits until lists changed since it was last asked, and says which. Every
   * new connection counts as a change of all. For one reader.
   */
  readonly awaitChanges: Effect.Effect<ReadonlySet<Change>>
}

/**
 * Prepares the connection to a server. Nothing is started or sent yet.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  server: McpServer,
  options?: { readonly credentials?: Credentials | undefined }
): Effect.fn.Return<McpConnection, never, ChildProcessSpawner | HttpClient.HttpClient | Scope.Scope> {
  const limits = yield* Limits
  const scope = yield* Effect.scope
  const spawner = yield* ChildProcessSpawner
  const baseClient = yield* HttpClient.HttpClient
  const credentials = options?.credentials
  const changes = new Changes()
  const teller = new Verdict.Teller(server)

  const accessToken = Effect.tap(credentials?.accessToken ?? Effect.succeedNone, (token) =>
    Effect.sync(() => Option.isSome(token) && teller.learn(Redacted.value(token.value)))
  )

  let current: Lifeline.Lists | undefined
  const open = (lists: Lifeline.Lists) => {
    current = lists
    const header = server.transport === "stdio" ? undefined : Http.badHeader(server)
    if (header !== undefined) return Effect.fail(badHeader(server, header))
    return Session.open(server, {
      httpClient: (server) => Http.client(baseClient, server, accessToken),
      listener: { onNotification: (method) => forget(lists, changes, method) }
    }).pipe(Effect.provideService(ChildProcessSpawner, spawner), Effect.provideService(Limits, limits))
  }
  const use = Lifeline.make({
    teller,
    scope,
    open,
    onConnect: Effect.sync(() => changes.add("tools", "resources", "prompts")),
    renew: credentials?.renew ?? (() => Effect.succeed(false))
  })

  const tools = ({ lists, session }: Lifeline.Held) =>
    lists.tools.orRead(Effect.flatMap(session.client.listTools(), (all) => usableTools(server.name, all)))

  // A list that was kept may lack what the server added without saying so.
  const findTool = Effect.fnUntraced(function* (held: Lifeline.Held, name: string) {
    const wasKept = held.lists.tools.isKept()
    const known = (yield* tools(held)).find((tool) => tool.name === name)
    if (known !== undefined || !wasKept) return known
    held.lists.tools.forget()
    return (yield* tools(held)).find((tool) => tool.name === name)
  })

  // Whether a call may be repeated is decided by what was known before it was first sent.
  const isRepeatable = (name: string): Effect.Effect<boolean, McpError> =>
    server.trustAnnotations
      ? Effect.map(
          use("tools/list", always, (held) => findTool(held, name)),
          saysRepeatable
        )
      : Effect.succeed(false)

  const connection: McpConnection = {
    server,
    info: use("initialize", always, ({ session }) => Effect.succeed(infoOf(session))),
    tools: use("tools/list", always, tools),
    resources: use("resources/list", always, ({ lists, session }) =>
      lists.resources.orRead(session.client.listResources())
    ),
    resourceTemplates: use("resources/templates/list", always, ({ lists, session }) =>
      lists.resourceTemplates.orRead(session.listResourceTemplates)
    ),
    prompts: use("prompts/list", always, ({ lists, session }) => lists.prompts.orRead(session.client.listPrompts())),
    forget: Effect.sync(() => {
      if (current !== undefined) for (const list of Object.values(current)) list.forget()
    }),
    callTool: Effect.fnUntraced(function* (name, input, options) {
      const repeatable = options?.repeatable ?? (yield* isRepeatable(name))
      let isSent = false
      const call = Effect.fnUntraced(function* (held: Lifeline.Held) {
        isSent = false
        const tool = yield* findTool(held, name)
        if (tool === undefined) return yield* teller.notFound(`tool not found: ${name} (server=${server.name})`)
        if (options?.accepts?.(tool) === false) {
          return yield* teller.notFound(`tool '${name}' of MCP server '${server.name}' has changed`)
        }
        if (!repeatable) yield* held.session.probe
        isSent = true
        return yield* held.session.client.callTool(
          { tool, arguments: input },
          { timeout: options?.timeout ?? server.timeout }
        )
      })
      return yield* use(`tools/call ${name}`, () => repeatable || !isSent, call)
    }),
    readResource: (uri) =>
      use("resources/read", always, ({ session }) => session.client.readResource({ uri }, { timeout: server.timeout })),
    getPrompt: (name, input = {}) =>
      use("prompts/get", always, ({ session }) =>
        session.client.getPrompt({ prompt: { name }, arguments: input }, { timeout: server.timeout })
      ),
    awaitChanges: changes.take
  }
  return connection
})

const always = () => true

const forget = (lists: Lifeline.Lists, changes: Changes, method: string): void => {
  switch (method) {
    case "notifications/tools/list_changed":
      lists.tools.forget()
      return changes.add("tools")
    case "notifications/resources/list_changed":
      lists.resources.forget()
      lists.resourceTemplates.forget()
      return changes.add("resources")
    case "notifications/prompts/list_changed":
      lists.prompts.forget()
      return changes.add("prompts")
  }
}

/** What changed and was not yet taken: a set, so that no server can fill it. */
class Changes {
  private readonly kinds = new Set<Change>()
  private readonly some = Latch.makeUnsafe(false)

  add(...kinds: ReadonlyArray<Change>): void {
    for (const kind of kinds) this.kinds.add(kind)
    this.some.openUnsafe()
  }

  // What comes at once is taken at once.
  readonly take: Effect.Effect<ReadonlySet<Change>> = Effect.map(
    Effect.andThen(this.some.await, Effect.yieldNow),
    () => {
      const taken = new Set(this.kinds)
      this.kinds.clear()
      this.some.closeUnsafe()
      return taken
    }
  )
}

const saysRepeatable = (tool: McpSchema.Tool | undefined): boolean =>
  tool?.annotations?.readOnlyHint === true || tool?.annotations?.idempotentHint === true

const badHeader = (server: McpServer, header: string) =>
  new McpError({
    server: server.name,
    reason: "config",
    detail: `the header '${header}' of MCP server '${server.name}' holds what no header can carry`
  })

const infoOf = (session: Session.Session): ServerInfo => ({
  protocolVersion: session.protocolVersion,
  name: session.client.serverInfo?.name,
  version: session.client.serverInfo?.version,
  instructions: session.client.instructions,
  capabilities: session.capabilities
})
