/* Search works in pages that are opened from a folder, too: a browser starts no worker there, so a hidden frame does its work. */
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const begin = () => {
        const frame = document.createElement("iframe");
        frame.hidden = true;
        document.body.appendChild(frame);
        this.inner = frame.contentWindow;
        this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        const script = this.inner.document.createElement("script");
        script.src = url;
        script.onload = () => {
          this.ready = true;
          this.waiting.splice(0).forEach((data) => this.postMessage(data));
        };
        this.inner.document.body.appendChild(script);
      };
      document.body ? begin() : addEventListener("DOMContentLoaded", begin);
    }
    postMessage(data) {
      if (!this.ready) this.waiting.push(data);
      else this.inner.dispatchEvent(new MessageEvent("message", { data }));
    }
    terminate() {}
  };
}
