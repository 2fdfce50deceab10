/**
 * What a page does about an answer that it fails to show. It keeps no other from being shown, and is
 * never passed over in silence: the server is asked for everything again, once, and if that does not
 * help a person is told. Pure.
 */

const Stage = Object.freeze({ asked: "asked", answered: "answered", told: "told" });

export class Faults {
  #report;
  #ask;
  #tell;
  #stages = new Map();

  /**
   * @param {object} ways
   * @param {(error: Error) => void} ways.report  to whoever develops this
   * @param {() => void} ways.ask                 the server, for everything again
   * @param {() => void} ways.tell                the person
   */
  constructor({ report, ask, tell }) {
    this.#report = report;
    this.#ask = ask;
    this.#tell = tell;
  }

  /** Run for each name. Gives the names that it went well for. */
  each(names, run) {
    return [...names].filter((name) => this.#goesWell(name, run));
  }

  /** Everything was asked for again, and is here: what fails from now on will not mend by itself. */
  restored() {
    for (const [name, stage] of this.#stages) {
      if (stage === Stage.asked) this.#stages.set(name, Stage.answered);
    }
  }

  #goesWell(name, run) {
    try {
      run(name);
      return true;
    } catch (error) {
      this.#failed(name, error);
      return false;
    }
  }

  #failed(name, error) {
    const stage = this.#stages.get(name);
    if (stage === Stage.asked || stage === Stage.told) return;
    this.#report(error);
    this.#stages.set(name, stage === undefined ? Stage.asked : Stage.told);
    if (stage === undefined) this.#ask();
    else this.#tell();
  }
}
