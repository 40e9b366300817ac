/**
 * A chat for end users: a page of its own that talks to one agent, for visitors and for the frames of other pages.
 *
 * Its server sends questions, answers, the calls that a user may decide about, and the media that skills return. Other
 * results, journals and the runs of other callers stay on the server.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import * as Access from "../http/Access.ts"
import * as ServedRuns from "../http/ServedRuns.ts"
import type { Kernel } from "../Kernel.ts"
import type { ConfigInvalid } from "../KernelError.ts"
import { layerFor } from "../kit/layerFor.ts"
import { MediaStore } from "../MediaStore.ts"
import { RunStore } from "../RunStore.ts"
import type * as RunWorker from "../RunWorker.ts"
import * as GuestAccess from "./internal/guestAccess.ts"
import * as GuestPage from "./internal/guestPage.ts"
import * as GuestRoutes from "./internal/guestRoutes.ts"
import * as OwnChatRoutes from "./internal/ownChatRoutes.ts"
import * as RunFacts from "./internal/runFacts.ts"

/**
 * Options of the page.
 *
 * @category models
 * @since 0.1.0
 */
export interface PageOptions extends Access.Options {
  /** The path of the page. Default: `/chat`. */
  readonly path?: `/${string}` | undefined
  /** The name that users read. Default: `Chat`. */
  readonly name?: string | undefined
  /** Questions to begin with. Default: none. */
  readonly starters?: ReadonlyArray<string> | undefined
  /** A line below the field for the message, such as what is done with messages. Default: none. */
  readonly consent?: string | undefined
  /**
   * Style sheet text after that of the page, for colors and type: `:root { --accent: oklch(0.55 0.2 30) }`. The variables
   * are those of `src/studio/page/style/tokens.css`. Default: the page's own colors.
   */
  readonly style?: string | undefined
  /** The origins of pages that may show this one in a frame, such as `https://shop.example`. Default: none. */
  readonly embedIn?: ReadonlyArray<string> | undefined
  /** Returns the user of a request. Default: each browser is a guest of its own, known by a random cookie. */
  readonly authenticate?: Access.Authenticate | undefined
  /**
   * Whether users see the pictures, audio, videos and documents that skills of the agent return. Default: true. With
   * false, they see those that the model itself replies with.
   */
  readonly media?: boolean | undefined
  /** The folder of evaluations, to which a thumb adds a score. Default: answers have no thumbs. */
  readonly evaluations?: string | undefined
}

/**
 * Adds the page to the router in context, and runs the runs of `agents` for the lifetime of the layer. Users talk to the
 * first agent.
 *
 * Everybody who can open the page can talk to the agent, at your cost: give it `authenticate`, or bound it with
 * `BudgetStore` and a limit of requests in front of it. A user answers the questions of their own runs unless a policy
 * names others.
 *
 * @example
 * const Server = HttpRouter.serve(
 *   ChatPage.layer({ agents: [support], name: "Support desk", embedIn: ["https://shop.example"] })
 * ).pipe(Layer.provide(NodeHttpServer.layer(createServer, { port: 3000 })), Layer.provide(KernelLive))
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <A extends RunWorker.Runnable<unknown>, R = never>(
  options: ServedRuns.Given<A, R> & PageOptions
): Layer.Layer<
  never,
  ConfigInvalid,
  HttpRouter.HttpRouter | Kernel | RunStore | MediaStore | RunWorker.Services<A> | R
> => {
  const { authenticate = GuestAccess.authenticate, path = "/chat" } = options
  const data = layerFor(Access.Access, () =>
    Layer.provide(routes(`${path}/data`, options), ServedRuns.layer<A, R>(options))
  )
  return Layer.merge(GuestPage.layer(path, options), Layer.provide(data, Access.layer(authenticate, options)))
}

const routes = (
  path: `/${string}`,
  { evaluations, media = true }: PageOptions
): Layer.Layer<never, never, HttpRouter.HttpRouter | RunStore | MediaStore | ServedRuns.ServedRuns> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const store = yield* RunStore
      yield* OwnChatRoutes.add(path, { store, media: yield* MediaStore, factsOf: RunFacts.make(store) })
      yield* GuestRoutes.add(path, { evaluations, media })
    })
  )
