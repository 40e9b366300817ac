import { describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { CodeInterpreter } from "kernai"
import { Code } from "kernai/code"
import { CodeInterpreterSuite } from "kernai/testing"

const open = Effect.map(Layer.build(Code.layerQuickJs()), (services) =>
  Context.get(services, CodeInterpreter.CodeInterpreter)
)

describe("QuickJS in threads", () => {
  for (const { name, run } of CodeInterpreterSuite.checks(open)) it.live(name, () => run)
})
