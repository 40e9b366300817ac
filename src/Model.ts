/**
 * A model as a value: its id and what it can do (BP-151).
 *
 * @since 0.1.0
 */

/** What a model takes (text, vision, *_in) and gives (text, image_gen, audio_out). */
export type Capability = "text" | "vision" | "audio_in" | "video_in" | "document_in" | "image_gen" | "audio_out"

/** US dollars for a million tokens. */
export interface Price {
  readonly inputPerMillion: number
  readonly outputPerMillion: number
  /** Of input read from the cache; absent = like other input. */
  readonly cachedPerMillion?: number
}

/** A model. */
export interface Model {
  readonly id: string
  readonly capabilities: ReadonlyArray<Capability>
  /** Key of the provider that serves it, as in `<provider>/<model>` (DR-25). */
  readonly provider?: string
  readonly contextWindow?: number
  readonly maxOutputTokens?: number
  readonly price?: Price
}
