/**
 * Keeps one MCP server connected.
 *
 * The connection opens with the first use, and again after the server was restarted or forgot the session. A request is
 * sent again only when the first one cannot have had an effect or may be repeated: a write that was cut off fails with
 * `outcome_unknown`. When the scope closes, no process, socket or timer is left.
 *
 * @since 0.1.0
 */

import type * as McpSchema from "effect/ai/McpSchema"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { isRecord } from "../internal/base/json.ts"
import { McpError } from "../KernelError.ts"
import { Limits } from "../Limits.ts"
import type * as Skill from "../Skill.ts"
import * as HostTime from "./internal/hostTime.ts"
import * as Http from "./internal/http.ts"
import * as McpSession from "./internal/mcpSession.ts"
import * as Reconnect from "./internal/reconnect.ts"
import * as ResourceWatch from "./internal/resourceWatch.ts"
import { Failures } from "./internal/requestFailure.ts"
import { Caller } from "./internal/serverRequests.ts"
import type { McpServer, ProtocolVersion } from "./McpConfig.ts"

export { McpError }

/**
 * A list of a server that changed.
 *
 * @category models
 * @since 0.1.0
 */
export type Change = "tools" | "resources" | "prompts"

/**
 * A server's description of itself.
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
 * A source of access tokens.
 *
 * @category models
 * @since 0.1.0
 */
export interface Credentials {
  /** The token to send now, if there is one. */
  readonly accessToken: Effect.Effect<Option.Option<Redacted.Redacted<string>>>
  /**
   * Called with the `www-authenticate` header when the server asks for a sign-in, or for one that allows more. Returns
   * true when there is another token now.
   */
  readonly renew: (challenge: string) => Effect.Effect<boolean, McpError>
}

/**
 * Values that complete an argument, the best first.
 *
 * @category models
 * @since 0.2.0
 */
export interface Completion {
  readonly values: ReadonlyArray<string>
  /** Whether there are more. */
  readonly hasMore: boolean
}

/**
 * Answers what a server asks while it works on a call. What is absent is not announced to the server.
 *
 * An answer of `AnswerPending` ends the call, and the server is told that nothing was decided.
 *
 * @category models
 * @since 0.2.0
 */
export interface Host {
  /** Asks a person: for the values of a form, or to open an address. Form values are completed by their defaults. */
  readonly elicit?: (asking: Skill.Asking) => Effect.Effect<Skill.Reply, Skill.AnswerPending>
  /** Asks a model for one reply. */
  readonly sample?: (
    sampling: Skill.Sampling
  ) => Effect.Effect<Skill.Sampled, Skill.AnswerPending | Skill.SamplingRefused>
}

/**
 * Options of one tool call.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallOptions {
  /**
   * Sends a call that was cut off again. Default: true for a tool that says so itself, on a server whose annotations
   * are trusted, else false.
   */
  readonly repeatable?: boolean | undefined
  /** Default: the server's `timeout`. */
  readonly timeout?: Duration.Input | undefined
  /**
   * Checks the tool as the connected server defines it, right before the call is sent. When it returns false, the call
   * fails with `not_found`.
   */
  readonly accepts?: ((tool: McpSchema.Tool) => boolean) | undefined
  /**
   * Answers what the server asks during this call. Default: the host of the connection, whose announcements hold.
   * Waiting for its answers takes nothing of `timeout`.
   *
   * @since 0.2.0
   */
  readonly host?: Host | undefined
  /**
   * The run that calls. A server on standard streams does not say which call it asks about: while calls of several runs
   * are under way, it gets no answer.
   *
   * @since 0.2.0
   */
  readonly run?: string | undefined
}

/**
 * One MCP server. Lists are kept until the server announces a change or is connected again.
 *
 * @category models
 * @since 0.1.0
 */
export interface McpConnection {
  readonly server: McpServer
  /** Connects when that has not happened yet. */
  readonly info: Effect.Effect<ServerInfo, McpError>
  readonly tools: Effect.Effect<ReadonlyArray<McpSchema.Tool>, McpError>
  /**
   * The tools that are left out of `tools`, by name, and why: a malformed one, or one whose schema refers to another
   * document.
   *
   * @since 0.2.0
   */
  readonly leftOut: Effect.Effect<ReadonlyMap<string, string>, McpError>
  readonly resources: Effect.Effect<ReadonlyArray<McpSchema.Resource>, McpError>
  readonly resourceTemplates: Effect.Effect<ReadonlyArray<McpSchema.ResourceTemplate>, McpError>
  readonly prompts: Effect.Effect<ReadonlyArray<McpSchema.Prompt>, McpError>
  /** Drops the kept lists, for a server that does not announce its changes. */
  readonly forget: Effect.Effect<void>
  /** Calls a tool by its name on the server. */
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
   * Completes what was written of an argument: of a prompt by its name, or of the template of a resource.
   *
   * @since 0.2.0
   */
  readonly complete: (
    of: { readonly prompt: string } | { readonly resource: string },
    argument: { readonly name: string; readonly value: string },
    others?: { readonly [name: string]: string }
  ) => Effect.Effect<Completion, McpError>
  /**
   * Emits whenever a resource changed, while the stream is read. Fails where the server offers no subscriptions.
   *
   * @since 0.2.0
   */
  readonly watch: (uri: string) => Stream.Stream<void, McpError>
  /**
   * Waits until lists changed since the last call, and returns which. A new connection changes all, and so does one that
   * is lost and cannot be opened again. For one reader.
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
  options?: {
    readonly credentials?: Credentials | undefined
    /** Answers what the server asks. Default: nobody, and the server is told so. */
    readonly host?: Host | undefined
  }
): Effect.fn.Return<McpConnection, never, ChildProcessSpawner | HttpClient.HttpClient | Scope.Scope> {
  const limits = yield* Limits
  const spawner = yield* ChildProcessSpawner
  const client = yield* HttpClient.HttpClient
  const changes = new Changes()
  const failures = new Failures(server)
  const watched = yield* ResourceWatch.make
  // Every token that is sent is masked in messages.
  const accessToken = Effect.tap(options?.credentials?.accessToken ?? Effect.succeedNone, (token) =>
    Effect.sync(() => Option.isSome(token) && failures.mask(Redacted.value(token.value)))
  )
  let current: McpSession.Session | undefined
  const open = McpSession.open(server, {
    httpClient: (server) => Http.client(client, server, accessToken),
    host: options?.host ?? {},
    onChange: (change) => changes.add(change),
    onUpdate: watched.receive,
    onErrorOutput: (last) => {
      failures.complaint = last
    }
  }).pipe(
    Effect.provideService(ChildProcessSpawner, spawner),
    Effect.provideService(Limits, limits),
    Effect.tap((session) =>
      Effect.sync(() => {
        current = session
        changes.add("tools", "resources", "prompts")
      })
    ),
    Effect.tap((session) => watched.renew(session.send)),
    Effect.tapError(() =>
      Effect.sync(() => {
        if (current !== undefined) changes.add("tools", "resources", "prompts")
        current = undefined
      })
    )
  )
  const renew = options?.credentials?.renew ?? (() => Effect.succeed(false))
  const use = yield* Reconnect.make({ failures, open, renew })
  const { timeout } = server

  return {
    server,
    info: use("initialize", always, ({ capabilities, client: { instructions, serverInfo }, protocolVersion }) =>
      Effect.succeed({
        protocolVersion,
        name: serverInfo?.name,
        version: serverInfo?.version,
        instructions,
        capabilities
      })
    ),
    tools: use("tools/list", always, ({ lists }) => lists.tools.get),
    leftOut: use("tools/list", always, ({ leftOut, lists }) => Effect.map(lists.tools.get, () => new Map(leftOut))),
    resources: use("resources/list", always, ({ lists }) => lists.resources.get),
    resourceTemplates: use("resources/templates/list", always, ({ lists }) => lists.resourceTemplates.get),
    prompts: use("prompts/list", always, ({ lists }) => lists.prompts.get),
    forget: Effect.suspend(() =>
      Effect.forEach(Object.values(current?.lists ?? {}), ({ forget }) => forget, { discard: true })
    ),
    callTool: callTool(server, use, failures, options?.host ?? {}),
    readResource: (uri) =>
      use("resources/read", always, ({ client, measure }) =>
        measure("resources/read", client.readResource({ uri }, { timeout }))
      ),
    getPrompt: (name, input = {}) =>
      use("prompts/get", always, ({ client, measure }) =>
        measure("prompts/get", client.getPrompt({ prompt: { name }, arguments: input }, { timeout }))
      ),
    complete: (of, argument, others) =>
      use("completion/complete", always, ({ capabilities, send }) => {
        if (capabilities["completions"] === undefined) return Effect.fail(lacks(server, "completions"))
        const ref =
          "prompt" in of ? { type: "ref/prompt", name: of.prompt } : { type: "ref/resource", uri: of.resource }
        const context = others === undefined ? {} : { context: { arguments: others } }
        return Effect.map(send("completion/complete", { ref, argument, ...context }), completionOf)
      }),
    watch: (uri) =>
      watched.watch(
        uri,
        use("resources/subscribe", always, ({ capabilities, send }) =>
          offersUpdates(capabilities)
            ? send("resources/subscribe", { uri })
            : Effect.fail(lacks(server, "subscriptions to resources"))
        ),
        use("resources/unsubscribe", always, ({ send }) => send("resources/unsubscribe", { uri }))
      ),
    awaitChanges: changes.take
  }
})

const always = () => true

const offersUpdates = ({ resources }: Readonly<Record<string, unknown>>): boolean =>
  isRecord(resources) && resources["subscribe"] === true

const lacks = ({ name }: McpServer, what: string) =>
  new McpError({ server: name, reason: "not_found", detail: `MCP server '${name}' offers no ${what}` })

const decodeCompletion = Schema.decodeUnknownOption(
  Schema.Struct({
    completion: Schema.Struct({
      values: Schema.Array(Schema.String),
      hasMore: Schema.optionalKey(Schema.NullOr(Schema.Boolean))
    })
  })
)

/** The completion in a result; empty when it is malformed, since it only helps a person to write. */
const completionOf = (result: unknown): Completion => {
  const { hasMore, values = [] } = Option.getOrUndefined(decodeCompletion(result))?.completion ?? {}
  return { values, hasMore: hasMore === true }
}

const callTool = (server: McpServer, use: Reconnect.Use, failures: Failures, own: Host): McpConnection["callTool"] =>
  Effect.fnUntraced(function* (name, input, options) {
    // Decided by what was known before the call is sent for the first time.
    const repeatable =
      options?.repeatable ??
      (server.trustAnnotations &&
        saysRepeatable(yield* use("tools/list", always, (session) => findTool(session, name))))
    let isSent = false
    return yield* use(
      `tools/call ${name}`,
      () => repeatable || !isSent,
      Effect.fnUntraced(function* (session) {
        isSent = false
        const tool = yield* findTool(session, name)
        if (tool === undefined) return yield* failures.notFound(`tool not found: ${name} (server=${server.name})`)
        if (options?.accepts?.(tool) === false) {
          return yield* failures.notFound(`tool '${name}' of MCP server '${server.name}' has changed`)
        }
        if (!repeatable) yield* session.probe
        isSent = true
        const limit = Duration.fromInputUnsafe(options?.timeout ?? server.timeout)
        const time = HostTime.make()
        const caller = { host: options?.host ?? own, run: options?.run, time }
        const call = time.within(session.client.callTool({ tool, arguments: input }), "tools/call", limit)
        return yield* session.measure("tools/call", Effect.provideService(call, Caller, caller), name)
      })
    )
  })

/** A list that was kept may lack a tool which the server added without saying so. */
const findTool = Effect.fnUntraced(function* ({ lists: { tools } }: McpSession.Session, name: string) {
  const known = (yield* tools.get).find((tool) => tool.name === name)
  if (known !== undefined) return known
  yield* tools.forget
  return (yield* tools.get).find((tool) => tool.name === name)
})

const saysRepeatable = (tool: McpSchema.Tool | undefined): boolean =>
  tool?.annotations?.readOnlyHint === true || tool?.annotations?.idempotentHint === true

/** The kinds of change that were not taken yet. */
class Changes {
  private readonly kinds = new Set<Change>()
  private readonly some = Latch.makeUnsafe(false)

  add(...kinds: ReadonlyArray<Change>): void {
    for (const kind of kinds) this.kinds.add(kind)
    this.some.openUnsafe()
  }

  /** Waits for a change, and takes those that arrive with it. */
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
