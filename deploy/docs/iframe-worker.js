// IFrameWorker: the part of Worker's interface that the site's search uses, implemented with a hidden iframe.
// Browsers refuse to start workers for pages of file://, for which the site's script is to find the search index.
(() => {
  if (location.protocol !== "file:") return;

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.ready = new Promise((resolve) => {
        this.frame = document.createElement("iframe");
        this.frame.hidden = true;
        document.body.appendChild(this.frame);
        const inner = this.frame.contentWindow;
        inner.postToParent = (data) => this.receive(data);
        const doc = this.frame.contentDocument;
        doc.open();
        doc.write(`<script>
          self.postMessage = (data) => postToParent(data);
          self.importScripts = (...urls) => urls.reduce((done, url) => done.then(() => new Promise((resolve) => {
            const script = document.createElement("script");
            script.src = url;
            script.onload = resolve;
            document.body.appendChild(script);
          })), Promise.resolve());
        <\/script><script src="${url}"><\/script>`);
        doc.close();
        this.frame.addEventListener("load", () => resolve(inner), { once: true });
      });
    }

    receive(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      this.ready.then((inner) => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
})();
