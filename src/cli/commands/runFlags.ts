/** The flags of `kernai run`. */

import { Flag } from "effect/cli"
import * as Shared from "./flags.ts"

export const flags = {
  question: Shared.optionalArgument("question", "What to ask; needs --model, --agent or --script"),
  ...Shared.agent,
  replay: Shared.optionalText("replay", "name", "Play this recorded conversation: a name of --list, or a file"),
  store: Shared.optional(Shared.storeFor("Where to store the run")),
  create: Shared.create,
  detach: Shared.toggle("detach", "Only store the question, for 'kernai worker', and print its id"),
  list: Shared.toggle("list", "List the recorded conversations"),
  image: Shared.text("image", "file", "Send a picture with the question; repeatable").pipe(Flag.atLeast(0)),
  root: Shared.text("root", "folder", "Read --image and --replay only inside this folder (.)").pipe(
    Flag.withDefault(".")
  ),
  ...Shared.form
}

export type RunFlags = Shared.Values<typeof flags>
