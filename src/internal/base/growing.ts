/**
 * A list that only grows, as a value.
 *
 * Many versions share one array: a version is how much of it it sees. The
 * newest appends in place, an older one copies first, so a version never
 * changes. A run has thousands of turns, and step 1,000 must cost what step 1
 * does.
 */

/** One version of a growing list. */
export class Growing<out A> {
  readonly length: number
  readonly #shared: Array<A>
  #array: ReadonlyArray<A> | undefined

  private constructor(shared: Array<A>, length: number, array?: ReadonlyArray<A>) {
    this.#shared = shared
    this.length = length
    this.#array = array
  }

  static of<A>(array: ReadonlyArray<A>): Growing<A> {
    // Copied when it first grows: a given array is never appended to.
    return new Growing<A>([], array.length, array)
  }

  /** The list as an array that never changes; made when first asked for. */
  get array(): ReadonlyArray<A> {
    return (this.#array ??= this.#shared.slice(0, this.length))
  }

  /** The list after `first`, as one new array. */
  after(first: ReadonlyArray<A>): ReadonlyArray<A> {
    if (this.#array !== undefined) return first.concat(this.#array)
    return first.concat(this.#shared.length === this.length ? this.#shared : this.#shared.slice(0, this.length))
  }

  last(): A | undefined {
    return this.length === 0 ? undefined : (this.#array ?? this.#shared)[this.length - 1]
  }

  /** The last `count` items, oldest first, without making an array of all. */
  recent(count: number): ReadonlyArray<A> {
    return (this.#array ?? this.#shared).slice(Math.max(0, this.length - count), this.length)
  }

  append(items: ReadonlyArray<A>): Growing<A> {
    if (items.length === 0) return this
    const own = this.#shared.length === this.length
    const shared = own ? this.#shared : this.array.slice()
    for (const item of items) shared.push(item)
    return new Growing(shared, shared.length)
  }
}
