/** What a client sends, as far as an agent reads it. Other fields are ignored, so later clients are accepted. */

import * as Schema from "effect/Schema"

const text = (length: number) => Schema.String.check(Schema.isMaxLength(length))

const sessionId = Schema.String.check(Schema.isPattern(/^acp-[0-9a-f]{32}$/))

const folder = text(4_096).check(Schema.isPattern(/^(?:\/|[A-Za-z]:[\\/]|\\\\)[^\0]*$/))

const optional = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const pairs = Schema.Array(Schema.Struct({ name: text(1_000), value: text(100_000) })).check(Schema.isMaxLength(1_000))

const named = { name: text(1_000) }

/** A server of tools that the client wants the agent to use. */
export const McpServer = Schema.Union([
  Schema.Struct({ ...named, type: Schema.Literals(["http", "sse"]), url: text(10_000), headers: pairs }),
  Schema.Struct({
    ...named,
    command: text(4_096),
    args: Schema.Array(text(100_000)).check(Schema.isMaxLength(1_000)),
    env: pairs
  })
])

const mcpServers = optional(Schema.Array(McpServer).check(Schema.isMaxLength(100)))

const flag = optional(Schema.Boolean)

export const Initialize = Schema.Struct({
  protocolVersion: Schema.Int,
  clientCapabilities: optional(
    Schema.Struct({
      fs: optional(Schema.Struct({ readTextFile: flag, writeTextFile: flag })),
      terminal: flag
    })
  )
})

export const NewSession = Schema.Struct({ cwd: folder, mcpServers })

export const LoadSession = Schema.Struct({ sessionId, cwd: folder, mcpServers })

export const ListSessions = Schema.Struct({
  cwd: optional(folder),
  cursor: optional(Schema.String.check(Schema.isPattern(/^\d{1,9}$/)))
})

export const SetMode = Schema.Struct({ sessionId, modeId: text(1_000) })

export const OfSession = Schema.Struct({ sessionId })

const mimeType = optional(text(200))

const media = { data: Schema.String, mimeType: text(200) }

const uri = text(10_000)

/** A part of a prompt. */
export const PromptBlock = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literals(["image", "audio"]), ...media }),
  Schema.Struct({ type: Schema.Literal("resource_link"), uri, name: text(1_000) }),
  Schema.Struct({
    type: Schema.Literal("resource"),
    resource: Schema.Union([
      Schema.Struct({ uri, text: Schema.String }),
      Schema.Struct({ uri, blob: Schema.String, mimeType })
    ])
  })
])

export const Prompt = Schema.Struct({
  sessionId,
  prompt: Schema.Array(PromptBlock).check(Schema.isMinLength(1), Schema.isMaxLength(1_000))
})

/** What a person decided about a call. */
export const Permission = Schema.Struct({
  outcome: Schema.Union([
    Schema.Struct({ outcome: Schema.Literal("cancelled") }),
    Schema.Struct({ outcome: Schema.Literal("selected"), optionId: Schema.String })
  ])
})

export const TextFile = Schema.Struct({ content: Schema.String })

/** Stands for a result without fields. */
export const Done = Schema.Unknown

export const CreatedTerminal = Schema.Struct({ terminalId: text(1_000) })

const exit = { exitCode: optional(Schema.Int), signal: optional(text(100)) }

export const TerminalOutput = Schema.Struct({ output: Schema.String, exitStatus: optional(Schema.Struct(exit)) })

export const TerminalExit = Schema.Struct(exit)
