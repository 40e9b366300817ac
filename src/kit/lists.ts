/**
 * Lists that grow, and the common prefix of lists.
 */

/**
 * One version of a list that only grows.
 *
 * Versions share one array, and each sees a prefix of it. The newest version appends in place, and an older version
 * copies first, so a version never changes. A run has thousands of turns, and turn 1,000 must cost no more than turn 1.
 */
export class Growing<out A> {
  readonly length: number
  readonly #shared: Array<A>
  #array: ReadonlyArray<A> | undefined

  private constructor(shared: Array<A>, length: number, array?: ReadonlyArray<A>) {
    this.#shared = shared
    this.length = length
    this.#array = array
  }

  /** Returns a first version. The array itself is never modified; it is copied when the list first grows. */
  static of<A>(array: ReadonlyArray<A>): Growing<A> {
    return new Growing<A>([], array.length, array)
  }

  /** The list as an immutable array, created on first access. */
  get array(): ReadonlyArray<A> {
    return (this.#array ??= this.#shared.slice(0, this.length))
  }

  /** Returns `first` followed by the list, as one new array. */
  after(first: ReadonlyArray<A>): ReadonlyArray<A> {
    if (this.#array !== undefined) return first.concat(this.#array)
    return first.concat(this.#shared.length === this.length ? this.#shared : this.#shared.slice(0, this.length))
  }

  at(index: number): A | undefined {
    return index < this.length ? (this.#array ?? this.#shared)[index] : undefined
  }

  /** Returns whether this list extends `before`. False if that cannot be decided without comparing items. */
  grewFrom(before: Growing<A>): boolean {
    return this === before || (this.#shared === before.#shared && before.length <= this.length)
  }

  last(): A | undefined {
    return this.at(this.length - 1)
  }

  /** Returns the last `count` items, oldest first, without creating an array of all. */
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

/** Returns the length of the common prefix of two lists. Items are compared by identity unless `isSame` is given. */
export const commonPrefix = <A>(
  before: ReadonlyArray<A>,
  after: ReadonlyArray<A>,
  isSame: (a: A | undefined, b: A | undefined) => boolean = (a, b) => a === b
): number => {
  if (before === after) return before.length
  const end = Math.min(before.length, after.length)
  let index = 0
  while (index < end && isSame(before[index], after[index])) index++
  return index
}
