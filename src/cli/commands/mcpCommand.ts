/**
 * `kernai mcp`: the servers of a config, looked at, called, signed in to; and kernai as a server.
 */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { usage } from "../exit.ts"
import * as Shared from "./flags.ts"

const config = Flag.String("config").pipe(
  Flag.withAlias("c"),
  Flag.withMetavar("<file>"),
  Flag.withDescription("The config of the servers (mcp.yml)"),
  Flag.withDefault("mcp.yml")
)
const json = Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))
const server = Argument.String("server").pipe(Argument.withDescription("Its name in the config"))
const tool = Argument.String("tool").pipe(Argument.withDescription("The name the tool has on its server"))

// What a command does is loaded when it is called.
const tools = Effect.promise(() => import("../mcp/tools.ts"))

const oneOrAll = Argument.String("server").pipe(
  Argument.withDescription("Its name in the config; default: all of them"),
  Argument.optional
)

const list = Command.make("list", { server: oneOrAll, config, json }, (input) =>
  Effect.flatMap(tools, (module) => module.list(input.config, input.server, input.json))
).pipe(Command.withDescription("Connect the servers and list their tools"))

const call = Command.make(
  "call",
  {
    server,
    tool,
    input: Argument.String("input").pipe(
      Argument.withDescription("Its arguments, a JSON object; default: {}"),
      Argument.optional
    ),
    config,
    json
  },
  (input) => Effect.flatMap(tools, (module) => module.call({ ...input, file: input.config }))
).pipe(
  Command.withDescription("Call one tool and print what it answers"),
  Command.withExamples([
    {
      command: `kernai mcp call files read_text_file '{"path": "letter.txt"}' -c examples/mcp.yml`,
      description: "Read a file through the example server"
    }
  ])
)

const doctor = Command.make("doctor", { config, json }, (input) =>
  Effect.flatMap(
    Effect.promise(() => import("../mcp/serverDoctor.ts")),
    (module) => module.examine(input.config, input.json)
  )
).pipe(Command.withDescription("Say what is wrong with a config and its servers, and what to do about it"))

const signIn = Command.make("sign-in", { server, config }, (input) =>
  Effect.flatMap(tools, (module) => module.signIn(input.config, input.server))
).pipe(Command.withDescription("Sign in to a server with a browser; the sign-in is kept for later"))

const hidden = tool.pipe(
  Argument.withDescription("The name the tool has on its server; default: all that wait for it"),
  Argument.optional
)

const approve = Command.make("approve", { server, tool: hidden, config }, (input) =>
  Effect.flatMap(tools, (module) => module.approve(input.config, input.server, input.tool))
).pipe(
  Command.withDescription(
    "Accept tools that changed since they were first seen, or are new on a server of which thousands were accepted"
  )
)

const serveFlags = {
  http: Flag.Boolean("http").pipe(
    Flag.withDescription("Serve Streamable HTTP instead of standard streams; prints the address and the token"),
    Flag.withDefault(false)
  ),
  host: Flag.String("host").pipe(
    Flag.withDescription("With --http: the address to listen on (127.0.0.1)"),
    Flag.optional
  ),
  port: Flag.Int("port").pipe(
    Flag.withDescription("With --http: which port; 0, the default, takes any that is free"),
    Flag.optional
  ),
  allowHost: Flag.String("allow-host").pipe(
    Flag.withMetavar("<host:port>"),
    Flag.withDescription(
      "With --http: a name clients ask this server by, beside the address it listens on; may be given several times, and 0.0.0.0 needs one"
    ),
    Flag.atLeast(0)
  ),
  skillsFrom: Shared.agent.skillsFrom,
  model: Shared.speaker.model.pipe(
    Flag.withDescription("Offer an agent with this model and the skills, instead of the skills")
  ),
  system: Shared.agent.system.pipe(Flag.withDescription("Instructions for the agent"))
}

const serve = Command.make(
  "serve",
  serveFlags,
  Effect.fnUntraced(function* (input) {
    const port = Option.getOrElse(input.port, () => 0)
    if (port < 0 || port > 65_535) return yield* usage("--port is a number from 0 to 65535")
    if (!input.http) {
      if (Option.isSome(input.host)) return yield* usage("--host needs --http")
      if (Option.isSome(input.port)) return yield* usage("--port needs --http")
      if (input.allowHost.length > 0) return yield* usage("--allow-host needs --http")
    }
    if (Option.isSome(input.system) && Option.isNone(input.model)) return yield* usage("--system needs --model")
    const { serve } = yield* Effect.promise(() => import("../mcp/serve.ts"))
    yield* serve({
      skills: Option.match(input.skillsFrom, {
        onNone: () => "general" as const,
        onSome: (directory) => ({ directory })
      }),
      agent: Option.getOrUndefined(
        Option.map(input.model, (model) => ({ model, instructions: Option.getOrElse(input.system, () => "") }))
      ),
      http: input.http
        ? { host: Option.getOrElse(input.host, () => "127.0.0.1"), port, hosts: input.allowHost }
        : undefined
    })
  })
).pipe(Command.withDescription("Be an MCP server: offer skills, or an agent, to other programs"))

/** The command. */
export const mcp = Command.make("mcp").pipe(
  Command.withDescription("Work with MCP servers, or be one"),
  Command.withShortDescription("Work with MCP servers, or be one"),
  Command.withSubcommands([list, call, doctor, signIn, approve, serve])
)
