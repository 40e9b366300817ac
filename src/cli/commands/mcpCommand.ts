/** `kernai mcp`: uses MCP servers, or serves as one. */

import { Command } from "effect/cli"
import * as Effect from "effect/Effect"
import { usage } from "../exit.ts"
import * as Settings from "../settings.ts"
import * as Shared from "./flags.ts"
import { mcp, server, callFlags, approveFlags, serveFlags } from "./mcpFlags.ts"

const { json } = Shared
const tools = Effect.promise(() => import("../mcp/tools.ts"))

const list = Command.make(
  "list",
  { server: Shared.optionalArgument("server", "The name of one server in the config (default: all)"), mcp, json },
  (input) => Effect.flatMap(tools, (module) => module.list(input.mcp, input.server, input.json))
).pipe(Command.withDescription("Connect the servers and list their tools"))

const call = Command.make("call", callFlags, (input) => Effect.flatMap(tools, (module) => module.call(input))).pipe(
  Command.withDescription("Call a tool and print its result"),
  Command.withExamples([
    {
      command: `kernai mcp call files read_text_file '{"path": "letter.txt"}'`,
      description: "Read a file through the server 'files' of mcp.yml"
    }
  ])
)

const doctor = Command.make("doctor", { mcp, json }, (input) =>
  Effect.flatMap(
    Effect.promise(() => import("../mcp/serverDoctor.ts")),
    (module) => module.examine(input.mcp, input.json)
  )
).pipe(Command.withDescription("Show the problems of a config and its servers, and how to fix them"))

const signIn = Command.make("sign-in", { server, mcp, json }, (input) =>
  Effect.flatMap(tools, (module) => module.signIn(input.mcp, input.server, input.json))
).pipe(Command.withDescription("Sign in to a server with a browser; the sign-in is stored"))

const approve = Command.make("approve", approveFlags, (input) =>
  Effect.flatMap(tools, (module) => module.approve(input))
).pipe(
  Command.withDescription(
    "Accept tools that changed since they were first seen, or that are new on a server with thousands of tools"
  ),
  Command.withShortDescription("Accept tools that changed")
)

const serve = Command.make(
  "serve",
  serveFlags,
  Effect.fnUntraced(function* (input) {
    const forHttp: ReadonlyArray<readonly [flag: string, isGiven: boolean]> = [
      ["--host", input.host !== undefined],
      ["--port", input.port !== undefined],
      ["--allow-host", input.allowHost.length > 0],
      ["--allow-origin", input.allowOrigin.length > 0]
    ]
    const idle = forHttp.find(([, isGiven]) => isGiven)
    if (!input.http && idle !== undefined) return yield* usage(`${idle[0]} needs --http`)
    const { skills: __, skillsFrom: ___, ...ofAgent } = yield* Settings.ofFlags(input)
    const needsModel = Settings.firstOf(ofAgent)
    if (needsModel !== undefined && (input.model ?? input.script ?? input.agent) === undefined) {
      return yield* usage(`${needsModel} needs --model, --agent or --script`)
    }
    const { serve } = yield* Effect.promise(() => import("../mcp/serve.ts"))
    yield* serve(input)
  })
).pipe(
  Command.withDescription(
    "Serve skills to other programs as an MCP server; with --model, --agent or --script serve an agent, which calls its skills without asking."
  ),
  Command.withShortDescription("Serve skills, or an agent")
)

export const mcpCommand = Command.make("mcp").pipe(
  Command.withDescription("Use MCP servers, or serve as one"),
  Command.withSubcommands([list, call, doctor, signIn, approve, serve])
)
